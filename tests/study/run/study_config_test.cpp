#include "normlab/study/run/study_config.h"

#include <gmock/gmock.h>

#include "normlab/base/error.h"

namespace normlab {
namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;

StudySpec read(const std::string& toml, std::initializer_list<const char*> sets = {}) {
  std::vector<Setting> settings = parse_toml(toml, "study.toml");
  for (const char* set : sets) settings.push_back(parse_setting(set));
  return read_study(settings);
}

TEST(StudyConfig, LaterSettingsReplaceEarlierOnesAndListsStayLists) {
  const StudySpec spec = read("[norm]\np = [1, 2.0]\nscheme = \"lp\"\n", {"norm.p=[3,4]", "optim.lr=1e-3"});
  ASSERT_EQ(spec.settings.size(), 3u);  // in the order of the configuration
  EXPECT_EQ(spec.settings[0].key, "norm.scheme");
  EXPECT_EQ(spec.settings[1].values, (std::vector<std::string>{"3", "4"}));
  EXPECT_TRUE(spec.settings[1].is_list);
  EXPECT_EQ(spec.settings[2].values, (std::vector<std::string>{"0.001"}));
  EXPECT_FALSE(read("norm.p = [1, 2]", {"norm.p=3"}).settings[0].is_list);
}

TEST(StudyConfig, WrittenAndReadBackItIsTheSame) {
  StudySpec spec = read(
      "[study]\ntitle = \"a \\\"title\\\"\"\nbaseline = \"b\"\ntarget_loss = 1.5\n"
      "[norm]\np = [2, inf]\n[data]\nsource = \"t\\u00e4xt\"\n"
      "[[variant]]\nlabel = \"b\"\nnorm.scheme = \"lp\"\nnorm.gain_init = 1\n[[variant]]\nlabel = \"c\"\n");
  spec.version = "1.2.3";
  const std::string written = to_toml(spec);
  const StudySpec again = read(written);
  EXPECT_EQ(to_toml(again), written);
  EXPECT_EQ(again.version, "1.2.3");
  EXPECT_EQ(again.study.title, "a \"title\"");
  EXPECT_EQ(again.study.target_loss, 1.5);
  ASSERT_EQ(again.variants.size(), 2u);
  EXPECT_EQ(again.variants[0].label, "b");
  EXPECT_EQ(again.variants[0].settings.size(), 2u);
  EXPECT_EQ(again.variants[1].label, "c");
}

TEST(StudyConfig, VariantsOfALaterFileReplaceEarlierOnes) {
  std::vector<Setting> settings = parse_toml("[[variant]]\nlabel = \"a\"\n[[variant]]\nlabel = \"b\"\n", "one.toml");
  for (const Setting& each : parse_toml("[[variant]]\nlabel = \"c\"\n", "two.toml")) settings.push_back(each);
  const StudySpec spec = read_study(settings);
  ASSERT_EQ(spec.variants.size(), 1u);
  EXPECT_EQ(spec.variants[0].label, "c");
}

TEST(StudyConfig, RefusesWithThePlace) {
  const auto refused = [](const std::string& toml, const char* expected) {
    EXPECT_THAT([&] { read(toml); }, ThrowsMessage<UsageError>(HasSubstr(expected))) << toml;
  };
  refused("[norm]\npp = [1, 2]\n", "Did you mean 'norm.p'?");
  refused("[norm]\np = []\n", "study.toml:2");
  refused("[norm]\np = [1, 2, 1.0]\n", "1 twice");
  refused("[norm]\np = [1, \"two\"]\n", "norm.p");
  refused("[study]\nbaselin = \"x\"\n", "study.baseline");
  refused("[study]\nbaseline = [\"x\"]\n", "one value");
  refused("[[variant]]\nnorm.p = 2\n", "no label");
  refused("[[variant]]\nlabel = \"a\"\n[[variant]]\nlabel = \"a\"\n", "two variants");
  refused("[[variant]]\nlabel = \"a\"\nnorm.p = [1, 2]\n", "not a list");
  refused("[variant]\nlabel = \"a\"\n", "[[variant]]");
  refused("[[variant]]\nlabel = \"a\"\nnorm.q = 1\n", "norm.q");
}

TEST(StudyConfig, VariantsHaveSensibleNumbers) {
  for (const char* key :
       {"variant.-1.label", "variant.1000000000.label", "variant.99999999999999999999.label", "variant.0"})
    EXPECT_THROW(read_study({{.key = key, .values = {"x"}, .where = "--set", .is_list = false}}), UsageError) << key;
}

}  // namespace
}  // namespace normlab
