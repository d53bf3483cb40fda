#include "normlab/data/pair_vocabulary.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "normlab/base/error.h"

namespace normlab {
namespace {

ParallelText text() {
  return {{"o gato come", "o can come pan", "gatos e cans", "o pan"},
          {"the cat eats", "the dog eats bread", "cats and dogs", "the bread"}};
}

TEST(PairVocabulary, EncodesAndDecodes) {
  PairVocabulary vocabulary = PairVocabulary::learn(text(), {.operations = 20});
  for (const std::string& line : text().source)
    EXPECT_EQ(vocabulary.decode(vocabulary.encode(Side::source, line)), line);
  for (const std::string& line : text().target)
    EXPECT_EQ(vocabulary.decode(vocabulary.encode(Side::target, line)), line);
  EXPECT_TRUE(vocabulary.encode(Side::source, "   ").empty());
}

TEST(PairVocabulary, WhatALanguageDoesNotHaveIsUnknown) {
  PairVocabulary vocabulary = PairVocabulary::learn(text(), {.operations = 20});
  const std::vector<int32_t> ids = vocabulary.encode(Side::source, "o 漢 come");
  EXPECT_EQ(std::count(ids.begin(), ids.end(), PairVocabulary::unknown), 1);
  // Every subword of a side's text is one of that side; outputs are the target's.
  const std::vector<bool> outputs = vocabulary.outputs();
  for (const std::string& line : text().target)
    for (const int32_t id : vocabulary.encode(Side::target, line)) EXPECT_TRUE(outputs[static_cast<size_t>(id)]);
  EXPECT_TRUE(outputs[PairVocabulary::end] && outputs[PairVocabulary::unknown]);
  EXPECT_FALSE(outputs[PairVocabulary::padding] || outputs[PairVocabulary::begin]);
  EXPECT_LT(std::count(outputs.begin(), outputs.end(), true), vocabulary.size() - 2);  // Galician has its own
}

TEST(PairVocabulary, WithoutMergesWordsAreSubwords) {
  PairVocabulary vocabulary = PairVocabulary::learn({{"a@@ b c"}, {"x y@@ z"}}, {.operations = 0});
  EXPECT_EQ(vocabulary.size(), PairVocabulary::first_subword + 6);
  EXPECT_EQ(vocabulary.decode(vocabulary.encode(Side::source, "a@@ b c")), "ab c");
}

TEST(PairVocabulary, RareSubwordsAreSplit) {
  const int all = PairVocabulary::learn(text(), {.operations = 20}).size();
  EXPECT_LT(PairVocabulary::learn(text(), {.operations = 20, .min_frequency = 3}).size(), all);
}

TEST(PairVocabulary, ReadsBackFromJson) {
  PairVocabulary vocabulary = PairVocabulary::learn(text(), {.operations = 20});
  PairVocabulary copy = PairVocabulary::from_json(vocabulary.to_json());
  EXPECT_TRUE(copy == vocabulary);
  EXPECT_EQ(copy.encode(Side::source, "gatos come"), vocabulary.encode(Side::source, "gatos come"));
  EXPECT_FALSE(copy == PairVocabulary::learn(text(), {.operations = 5}));
  nlohmann::json damaged = vocabulary.to_json();
  damaged["target"].push_back(9999);
  EXPECT_THROW(PairVocabulary::from_json(damaged), DataError);
  EXPECT_THROW(PairVocabulary::from_json({{"kind", "char"}}), DataError);
  EXPECT_THROW(PairVocabulary::from_json(nlohmann::json::array()), DataError);
}

}  // namespace
}  // namespace normlab
