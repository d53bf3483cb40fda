// Suggestions: case, dashes, sections, synonyms, and only then the nearest name.
#include "normlab/base/suggest.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "normlab/config/config.h"

namespace normlab {
namespace {

std::vector<std::string> all_keys() {
  Config config;
  std::vector<std::string> keys;
  const FieldList list = fields(config);
  for (const Field& field : list.fields()) keys.push_back(field.key);
  return keys;
}

TEST(Suggest, KeysByOtherNames) {
  const std::vector<std::string> keys = all_keys();
  const std::pair<const char*, const char*> cases[] = {
      {"lr", "optim.lr"},
      {"LR", "optim.lr"},
      {"learning_rate", "optim.lr"},
      {"learning-rate", "optim.lr"},
      {"train.lr", "optim.lr"},
      {"train.learning_rate", "optim.lr"},
      {"layers", "model.n_layers"},
      {"heads", "model.n_heads"},
      {"epochs", "train.max_steps"},
      {"p", "norm.p"},
      {"Norm.P", "norm.p"},
      {"n_embd", "model.d_model"},
      {"model.d_modle", "model.d_model"},
  };
  for (const auto& [said, meant] : cases) EXPECT_EQ(suggest(said, keys), meant) << said;
  EXPECT_EQ(suggest("quark", keys), std::nullopt);
}

TEST(Suggest, OnlyWhatIsACandidate) {
  EXPECT_EQ(suggest("sample", std::vector<std::string>{"train", "generate"}), "generate");
  EXPECT_EQ(suggest("sample", std::vector<std::string>{"train", "eval"}), std::nullopt);
  EXPECT_EQ(suggest("NGPT", std::vector<std::string>{"angpt", "ngpt"}), "ngpt");
  EXPECT_EQ(suggest("--Top_K", std::vector<std::string>{"--top-k", "--top-p"}), "--top-k");
}

TEST(Suggest, AnAliasIsCertain) {
  EXPECT_EQ(alias_of("lrr", all_keys()), std::nullopt);
  EXPECT_EQ(suggest("optim.lrr", all_keys()), "optim.lr");
  EXPECT_EQ(alias_of("size", std::vector<std::string>{"a.size", "b.size"}), std::nullopt);
}

}  // namespace
}  // namespace normlab
