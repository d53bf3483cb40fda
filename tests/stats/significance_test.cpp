// Paired tests of scores: what they must find, their level, and their reproducibility.
#include "normlab/stats/significance.h"

#include <gtest/gtest.h>

#include "normlab/base/random.h"
#include "refusal.h"

namespace normlab {
namespace {

double mean_score(std::span<const double> sums) { return sums[0] / sums[1]; }

// Rows whose score is the mean of `shift` plus noise in [0, 1).
StatisticRows noisy_rows(uint64_t seed, double shift, size_t n = 200) {
  StatisticRows rows;
  for (size_t i = 0; i < n; ++i) rows.push_back({draw_uniform(seed, i) + shift, 1});
  return rows;
}

SignificanceOptions with(PairedTest test, int trials = 500) { return {.test = test, .trials = trials, .seed = 3}; }

class EachTest : public testing::TestWithParam<PairedTest> {};
INSTANTIATE_TEST_SUITE_P(Significance, EachTest, testing::Values(PairedTest::bootstrap, PairedTest::randomization));

TEST_P(EachTest, FindsAClearDifference) {
  const auto found = compare_outputs(noisy_rows(1, 0), noisy_rows(2, 0.3), mean_score, with(GetParam()));
  EXPECT_NEAR(found.difference, 0.3, 0.1);
  EXPECT_DOUBLE_EQ(found.p_value, 1.0 / 501);
}

TEST_P(EachTest, FindsNoneBetweenEqualOutputs) {
  const auto found = compare_outputs(noisy_rows(1, 0), noisy_rows(1, 0), mean_score, with(GetParam()));
  EXPECT_EQ(found.difference, 0);
  EXPECT_EQ(found.p_value, 1);
}

TEST_P(EachTest, IsReproducible) {
  const auto p = [&](uint64_t seed) {
    SignificanceOptions options = with(GetParam());
    options.seed = seed;
    return compare_outputs(noisy_rows(1, 0), noisy_rows(2, 0.02), mean_score, options).p_value;
  };
  EXPECT_EQ(p(7), p(7));
  EXPECT_NE(p(7), p(8));
}

TEST_P(EachTest, RefusesWhatCannotBeCompared) {
  const auto compare = [&](size_t first, size_t second, int trials) {
    return [=] {
      compare_outputs(noisy_rows(1, 0, first), noisy_rows(2, 0, second), mean_score, with(GetParam(), trials));
    };
  };
  expect_refused(compare(3, 4, 10), Exit::data, "got 3 and 4");
  expect_refused(compare(0, 0, 10), Exit::data, "at least one");
  expect_refused(compare(3, 3, 0), Exit::usage, "trials");
}

// Of pairs of outputs that do not differ, the share of those with p <= 0.05.
struct Rejections {
  int by_p_value = 0, by_sacrebleu = 0;
};
constexpr int null_pairs = 600;
Rejections reject_null_pairs(PairedTest test) {
  Rejections out;
  for (uint64_t i = 0; i < null_pairs; ++i) {
    const auto found = compare_outputs(noisy_rows(stream_key(1, i), 0, 100), noisy_rows(stream_key(2, i), 0, 100),
                                       mean_score, with(test, 199));
    out.by_p_value += found.p_value <= 0.05;
    out.by_sacrebleu += found.p_sacrebleu <= 0.05;
  }
  return out;
}

TEST_P(EachTest, KeepsItsLevel) {
  EXPECT_NEAR(reject_null_pairs(GetParam()).by_p_value, 0.05 * null_pairs, 16);  // three standard deviations
}

// Why p_sacrebleu decides nothing: under the null hypothesis far more than 5 % of its values are below 0.05.
TEST(Significance, SacrebleusBootstrapRejectsTooOften) {
  EXPECT_GT(reject_null_pairs(PairedTest::bootstrap).by_sacrebleu, 0.1 * null_pairs);
  const Rejections randomized = reject_null_pairs(PairedTest::randomization);
  EXPECT_EQ(randomized.by_sacrebleu, randomized.by_p_value);  // the same formula where no two trials are equal
}

TEST(Significance, BootstrapIntervalHoldsTheDifference) {
  const auto found = compare_outputs(noisy_rows(1, 0), noisy_rows(2, 0.1), mean_score, with(PairedTest::bootstrap));
  EXPECT_LT(found.interval.low, found.difference);
  EXPECT_GT(found.interval.high, found.difference);
  // Of the mean of 200 differences of two uniform values: 2 x 1.96 x sqrt(1/6/200) = 0.113.
  EXPECT_NEAR(found.interval.high - found.interval.low, 0.113, 0.02);
}

}  // namespace
}  // namespace normlab
