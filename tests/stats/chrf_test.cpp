// chrF: scores that sacreBLEU 2.6.0 gives, and its edges.
#include "normlab/stats/chrf.h"

#include <gtest/gtest.h>

#include "translation_examples.h"

namespace normlab {
namespace {

double score_examples(size_t references, const ChrfOptions& options) {
  const auto characters = example_segments(references, characters_of);
  const auto words = example_segments(references);  // no word of them ends or begins with punctuation
  StatisticRows rows;
  for (size_t i = 0; i < characters.size(); ++i) rows.push_back(chrf_statistics({characters[i], words[i]}, options));
  return chrf(sum_rows(rows), options);
}

TEST(Chrf, EqualsSacrebleu) {
  EXPECT_DOUBLE_EQ(score_examples(1, {}), 47.801529234079915);
  EXPECT_DOUBLE_EQ(score_examples(2, {}), 64.15260015366354);
  EXPECT_DOUBLE_EQ(score_examples(1, {.word_order = 2}), 50.01398472576898);
  EXPECT_DOUBLE_EQ(score_examples(2, {.word_order = 2}), 63.25457012215425);
}

TEST(Chrf, Edges) {
  const auto score = [](const WordIds& hypothesis, const WordIds& reference) {
    return chrf(chrf_statistics({{hypothesis, {reference}}, {}}));
  };
  EXPECT_EQ(score({1, 2, 3}, {1, 2, 3}), 100);
  EXPECT_EQ(score({1, 2, 3}, {4, 5, 6}), 0);
  EXPECT_EQ(score({}, {1}), 0);
  EXPECT_EQ(score({}, {}), 0);
}

TEST(Chrf, Options) {
  const auto score = [](const WordIds& hypothesis, const WordIds& reference, const ChrfOptions& options) {
    return chrf(chrf_statistics({{hypothesis, {reference}}, {}}, options), options);
  };
  EXPECT_DOUBLE_EQ(score({1, 2, 3}, {1, 2, 4}, {.eps_smoothing = true}), 19.444444444444443);
  EXPECT_DOUBLE_EQ(score({1, 2, 3}, {1, 2, 4}, {.character_order = 3, .beta = 1}), 38.88888888888888);
  EXPECT_DOUBLE_EQ(score({1}, {1}, {.character_order = 2, .eps_smoothing = true}), 50);
}

TEST(Chrf, OrdersThatTheReferenceLacksDoNotCount) {
  const std::vector<double> row = chrf_statistics({{{1, 2, 3}, {{1}}}, {}});
  EXPECT_EQ(row[0], 3);
  EXPECT_EQ(row[3], 0);
}

}  // namespace
}  // namespace normlab
