// A tokenizer.json: merges, patterns, added tokens, and what is refused. tests/python compares with the tokenizers
// package.
#include "normlab/data/subword_tokenizer.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "normlab/base/error.h"
#include "normlab/data/byte_bpe_learn.h"
#include "normlab/data/tokenizer.h"

namespace normlab {
namespace {

using nlohmann::json;

json small_file() {
  const json bytes = {{"type", "ByteLevel"}, {"add_prefix_space", false}};
  return {{"added_tokens", {{{"id", 6}, {"content", "<end>"}, {"lstrip", true}, {"special", true}}}},
          {"pre_tokenizer", bytes},
          {"decoder", bytes},
          {"model",
           {{"type", "BPE"},
            {"vocab", {{"a", 0}, {"b", 1}, {"ab", 2}, {"\u0120", 3}, {"abb", 4}, {"\u0120ab", 5}}},
            {"merges", {"a b", "ab b", "\u0120 ab"}}}}};
}

std::vector<int32_t> encode(const json& file, std::string_view text) {
  return SubwordTokenizer(file.dump(), "test").encode(text, "text");
}

std::string refusal(const json& file) {
  try {
    const SubwordTokenizer tokenizer(file.dump(), "test");
  } catch (const DataError& error) {
    return error.what();
  }
  return "";
}

TEST(SubwordTokenizer, MergesInTheOrderOfRanks) {
  EXPECT_EQ(encode(small_file(), "abb ab"), (std::vector<int32_t>{4, 5}));
  EXPECT_EQ(encode(small_file(), "ba"), (std::vector<int32_t>{1, 0}));
}

TEST(SubwordTokenizer, LongPiecesMergeAsShortOnes) {
  std::string text;
  std::vector<int32_t> expected;
  for (int i = 0; i < 100; ++i) text += i % 3 == 0 ? "abb" : "ab";
  for (int i = 0; i < 100; ++i) expected.push_back(i % 3 == 0 ? 4 : 2);
  EXPECT_EQ(encode(small_file(), text), expected);
}

TEST(SubwordTokenizer, AnAddedTokenTakesTheSpaceBeforeIt) {
  EXPECT_EQ(encode(small_file(), "ab <end>b"), (std::vector<int32_t>{2, 6, 1}));
}

TEST(SubwordTokenizer, DecodesToTheText) {
  const SubwordTokenizer tokenizer(small_file().dump(), "test");
  EXPECT_EQ(tokenizer.decode(tokenizer.encode("abb ab ba", "text")), "abb ab ba");
}

TEST(SubwordTokenizer, RefusesByName) {
  json file = small_file();
  file["model"]["type"] = "WordPiece";
  EXPECT_NE(refusal(file).find("WordPiece"), std::string::npos);
  file = small_file();
  file["normalizer"] = {{"type", "Lowercase"}};
  EXPECT_NE(refusal(file).find("Lowercase"), std::string::npos);
  file = small_file();
  file["model"]["merges"].push_back("a x");
  EXPECT_NE(refusal(file).find("merge 4"), std::string::npos);
  file = small_file();
  file["added_tokens"][0]["id"] = 1 << 29;
  EXPECT_NE(refusal(file).find("far beyond"), std::string::npos);
}

TEST(SubwordTokenizer, TextThatIsNotUtf8IsRefused) { EXPECT_THROW(encode(small_file(), "a\xff"), DataError); }

TEST(TextPattern, MeansWhatOnigurumaMeans) {
  EXPECT_EQ(TextPattern(R"(\s)", "test").find("a\u180E ", 0), (std::pair<size_t, size_t>{4, 5}));       // not U+180E
  EXPECT_EQ(TextPattern(R"(\p{L})", "test").find("\U00031350", 0), (std::pair<size_t, size_t>{0, 4}));  // Unicode 15
  for (const char* unsupported :
       {R"(\w)", R"(\b)", "^a", "a{1,2}+", R"((?<=a)b)", "[a[b]]", R"([\S])", R"(\p{Han})", "a*"})
    EXPECT_THROW(TextPattern(unsupported, "test"), DataError) << unsupported;
}

TEST(ByteBpeLearn, TheMostFrequentPairComesFirstThenTheLowerIds) {
  const std::string file = learn_tokenizer_json({"abab abab ab"}, {.operations = 2, .min_frequency = 2});
  EXPECT_EQ(json::parse(file)["model"]["merges"], json::parse(R"([["a", "b"], ["Ġ", "ab"]])"));
}

TEST(Tokenizer, OfSubwordsSurvivesACheckpoint) {
  const json stored = {{"kind", "subword"}, {"vocab_size", 9U}, {"tokenizer", small_file().dump()}};
  const Tokenizer tokenizer = Tokenizer::from_json(stored);
  EXPECT_EQ(tokenizer.vocab_size(), 9);
  EXPECT_EQ(tokenizer.bytes_of(8), "");  // a row of the model without a token
  EXPECT_EQ(Tokenizer::from_json(json::parse(tokenizer.to_json().dump())), tokenizer);
  EXPECT_THROW(tokenizer.with_vocab_size(3), DataError);
}

}  // namespace
}  // namespace normlab
