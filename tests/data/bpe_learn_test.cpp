// Learning of BPE: small texts whose merges can be followed, and codes that subword-nmt 0.3.8 learned.
#include "normlab/data/bpe_learn.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace normlab {
namespace {

using testing::ElementsAre;

BpeCodes learn(const std::string& text, const BpeLearning& options) {
  WordCounts words;
  words.add_line(text);
  return learn_bpe(words, options);
}

TEST(BpeLearn, MergesTheMostFrequentPairFirst) {
  EXPECT_THAT(learn("ab ab ab abc abc", {.operations = 10}),
              ElementsAre(BpePair("a", "b</w>"), BpePair("b", "c</w>"), BpePair("a", "bc</w>")));
}

TEST(BpeLearn, OfEquallyFrequentPairsTheLast) {
  EXPECT_EQ(learn("ab ab cd cd éf éf", {.operations = 1}), (BpeCodes{{"é", "f</w>"}}));
}

TEST(BpeLearn, Stops) {
  EXPECT_EQ(learn("abcd abcd", {.operations = 2}).size(), 2U);
  EXPECT_EQ(learn("abcd abcd", {.operations = 99}).size(), 3U);
  EXPECT_TRUE(learn("abcd abcd", {.operations = 99, .min_frequency = 3}).empty());
  EXPECT_TRUE(learn("a b c", {}).empty());
  EXPECT_TRUE(learn("", {}).empty());
}

// Overlapping pairs: of "aaa" only the first two letters are merged.
TEST(BpeLearn, OverlappingPairs) {
  EXPECT_EQ(to_text(learn("aaaa aaaa aaab aaab aaab baaa", {.operations = 6})),
            "#version: 0.2\na a\naa a\naaa b</w>\naaa a</w>\n");
}

// White space of other scripts inside words, at which subword-nmt's merges may begin.
TEST(BpeLearn, SpacesInsideWords) {
  WordCounts words;
  words.add("\u00a0ac", 9);
  words.add("\u00a0abxabx", 2);
  words.add("zabz", 4);
  EXPECT_EQ(to_text(learn_bpe(words, {.operations = 20})),
            "#version: 0.2\n\u00a0 a\n\u00a0a c</w>\na b\nz ab\nzab z</w>\n\u00a0a b\n\u00a0ab x\n\u00a0abx "
            "ab\n\u00a0abxab x</w>\nb x\n");
}

TEST(BpeLearn, TellsItsProgress) {
  WordCounts words;
  words.add_line("abcd abcd");
  std::vector<int> told;
  learn_bpe(words, {.operations = 2}, [&](int merges) { told.push_back(merges); });
  EXPECT_THAT(told, ElementsAre(1, 2));
}

}  // namespace
}  // namespace normlab
