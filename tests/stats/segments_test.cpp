// Segments: ids, sums and n-grams.
#include "normlab/stats/segments.h"

#include <gtest/gtest.h>

namespace normlab {
namespace {

TEST(Segments, EqualWordsGetEqualIds) {
  TokenIds ids;
  const std::vector<std::string> first = {"a", "b", "a"}, second = {"b", "", "c"};
  EXPECT_EQ(ids(first), (WordIds{0, 1, 0}));
  EXPECT_EQ(ids(second), (WordIds{1, 2, 3}));
}

TEST(Segments, SumsRows) {
  EXPECT_EQ(sum_rows({{1, 2}, {10, 20}, {0, 0.5}}), (std::vector<double>{11, 22.5}));
  EXPECT_TRUE(sum_rows({}).empty());
}

TEST(Segments, CountsNgrams) {
  const WordIds tokens = {7, 8, 7, 8, 7};
  const NgramCounts pairs = count_ngrams(tokens, 2);
  EXPECT_EQ(pairs.size(), 2U);
  EXPECT_EQ(pairs.at(std::u32string{7, 8}), 2);
  EXPECT_EQ(pairs.at(std::u32string{8, 7}), 2);
  EXPECT_EQ(count_ngrams(tokens, 5).size(), 1U);
  EXPECT_TRUE(count_ngrams(tokens, 6).empty());
}

}  // namespace
}  // namespace normlab
