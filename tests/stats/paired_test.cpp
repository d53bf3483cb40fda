// Paired tests against SciPy, statsmodels and published examples.
#include "normlab/stats/paired.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>

#include "refusal.h"

namespace normlab {
namespace {

using testing::DoubleNear;
using testing::ElementsAre;
using testing::IsEmpty;

const std::vector<double> folds{0.021, 0.013, -0.004, 0.030, 0.017, 0.009, 0.025, -0.002, 0.011, 0.019};

// Hamilton depression scale before and after a tranquilliser (Hollander and Wolfe, 1973, table 3.1).
const std::vector<double> depression{1.83 - .878, .50 - .647,  1.62 - .598, 2.48 - 2.05, 1.68 - 1.06,
                                     1.88 - 1.29, 1.55 - 1.06, 3.06 - 3.14, 1.30 - 1.29};

TEST(Paired, PlainTAsScipy) {
  // scipy.stats.ttest_1samp(folds, 0), .confidence_interval(0.95) and (0.90)
  const TTest test = paired_t(folds);
  EXPECT_DOUBLE_EQ(test.mean, 0.0139);
  EXPECT_DOUBLE_EQ(test.standard_error, 0.003455912807542072);
  EXPECT_DOUBLE_EQ(test.statistic, 4.022092215308525);
  EXPECT_EQ(test.df, 9);
  EXPECT_NEAR(test.p_value, 0.003008568354290608, 1e-15);
  EXPECT_NEAR(test.interval.low, 0.0060821820884126455, 1e-15);
  EXPECT_NEAR(test.interval.high, 0.021717817911587355, 1e-15);
  EXPECT_FALSE(test.no_spread);
  const Interval narrow = paired_t(folds, 0.9).interval;
  EXPECT_NEAR(narrow.low, 0.007564921538362299, 1e-15);
  EXPECT_NEAR(narrow.high, 0.020235078461637697, 1e-15);
  EXPECT_EQ(narrow.level, 0.9);
}

TEST(Paired, CorrectedTAsScipy) {
  // se = sqrt(numpy.var(folds, ddof=1) * (1/10 + 1/9)); scipy.stats.t.sf(mean / se, 9) * 2, t.interval(0.95, 9, mean,
  // se)
  const TTest test = corrected_resampled_t(folds, 1.0 / 9);
  EXPECT_DOUBLE_EQ(test.standard_error, 0.005021324895254608);
  EXPECT_DOUBLE_EQ(test.statistic, 2.768193711810236);
  EXPECT_NEAR(test.p_value, 0.021817850719936385, 1e-15);
  EXPECT_NEAR(test.interval.low, 0.002540973921462842, 1e-15);
  EXPECT_NEAR(test.interval.high, 0.025259026078537156, 1e-15);
}

TEST(Paired, SignOfDifferencesTurnsTheStatistic) {
  std::vector<double> turned = folds;
  for (double& difference : turned) difference = -difference;
  const TTest test = corrected_resampled_t(turned, 1.0 / 9);
  EXPECT_DOUBLE_EQ(test.statistic, -2.768193711810236);
  EXPECT_NEAR(test.p_value, 0.021817850719936385, 1e-15);
  EXPECT_EQ(wilcoxon_signed_rank(turned).p_value, wilcoxon_signed_rank(folds).p_value);
  EXPECT_EQ(wilcoxon_signed_rank(turned).rank_sum_positive, wilcoxon_signed_rank(folds).rank_sum_negative);
}

TEST(Paired, EqualDifferencesAreFlagged) {
  const TTest none = corrected_resampled_t(std::vector<double>(5, 0.0), 0.25);
  EXPECT_TRUE(none.no_spread);
  EXPECT_EQ(none.statistic, 0);
  EXPECT_EQ(none.p_value, 1);
  const TTest same = paired_t(std::vector<double>(5, -0.1));
  EXPECT_TRUE(same.no_spread);
  EXPECT_EQ(same.statistic, -inf);
  EXPECT_EQ(same.p_value, 0);
  EXPECT_EQ(same.interval.low, -0.1);
  EXPECT_EQ(same.interval.high, -0.1);
}

TEST(Paired, ExtremeButFiniteDifferences) {
  const TTest tiny_spread = paired_t(std::vector{1.0, std::nextafter(1.0, 2.0)});
  EXPECT_GT(tiny_spread.statistic, 1e15);
  EXPECT_LT(tiny_spread.p_value, 1e-15);
  EXPECT_NEAR(paired_t(std::vector{1e-200, 2e-200, 3e-200}).statistic, 2 * std::sqrt(3.0), 1e-12);
  EXPECT_NEAR(paired_t(std::vector{1e200, 2e200, 3e200}).statistic, 2 * std::sqrt(3.0), 1e-12);
  std::vector<double> denormal(10, 0.0);  // the spread is not 0, the standard error rounds to it
  std::fill_n(denormal.begin(), 5, 5e-324);
  EXPECT_TRUE(paired_t(denormal).no_spread);
  expect_refused([] { paired_t(std::vector{1.7e308, 1.6e308}); }, Exit::data, "too large");
}

TEST(Wilcoxon, ExactAsScipy) {
  // scipy.stats.wilcoxon(folds)
  const WilcoxonTest test = wilcoxon_signed_rank(folds);
  EXPECT_EQ(test.statistic, 3);
  EXPECT_EQ(test.rank_sum_negative, 3);
  EXPECT_EQ(test.rank_sum_positive, 52);
  EXPECT_DOUBLE_EQ(test.p_value, 0.009765625);
  EXPECT_EQ(test.method, WilcoxonMethod::exact);
  EXPECT_EQ(test.n_used, 10u);
  // The shifts that scipy.stats.wilcoxon(folds - shift, method='exact') does not reject.
  ASSERT_TRUE(test.interval);
  EXPECT_DOUBLE_EQ(test.interval->low, 0.0055);
  EXPECT_DOUBLE_EQ(test.interval->high, 0.0215);
  EXPECT_DOUBLE_EQ(test.interval->level, 0.951171875);
}

TEST(Wilcoxon, PublishedExample) {
  // Hollander and Wolfe: V = 40, one-sided p = 0.0195, interval 0.010 to 0.786 at 96.1 %.
  const WilcoxonTest test = wilcoxon_signed_rank(depression);
  EXPECT_EQ(test.rank_sum_positive, 40);
  EXPECT_DOUBLE_EQ(test.p_value, 0.0390625);  // scipy.stats.wilcoxon(depression, method='exact')
  ASSERT_TRUE(test.interval);
  EXPECT_NEAR(test.interval->low, 0.010, 1e-12);
  EXPECT_NEAR(test.interval->high, 0.786, 1e-12);
  EXPECT_DOUBLE_EQ(test.interval->level, 0.9609375);
}

TEST(Wilcoxon, TiesAndZerosAsScipy) {
  // scipy.stats.wilcoxon(x): with ties and at most 13 values it enumerates all signs
  const WilcoxonTest zeros = wilcoxon_signed_rank(std::vector<double>{1, -1, 2, 2, -3, 4, 4, 5, 0, 6, 0, -2, 7});
  EXPECT_EQ(zeros.statistic, 11.5);
  EXPECT_DOUBLE_EQ(zeros.p_value, 0.060546875);
  EXPECT_EQ(zeros.method, WilcoxonMethod::exact_ties);
  EXPECT_EQ(zeros.n_used, 11u);
  EXPECT_EQ(zeros.n_zeros, 2u);
  const WilcoxonTest ties = wilcoxon_signed_rank(std::vector{0.5, 0.5, 0.5, -0.5, 1.0, 1.0, 2.0});
  EXPECT_EQ(ties.statistic, 2.5);
  EXPECT_DOUBLE_EQ(ties.p_value, 0.078125);
}

TEST(Wilcoxon, FiftyExactThenNormalAsScipy) {
  std::vector<double> exact, approximate;
  for (int i = 0; i < 50; ++i) exact.push_back((i * 37) % 101 - 40 + 0.25);
  for (int i = 0; i < 60; ++i) approximate.push_back((i * 37) % 101 - 40);
  // scipy.stats.wilcoxon(x); in the second one zero and nine ties
  const WilcoxonTest fifty = wilcoxon_signed_rank(exact);
  EXPECT_EQ(fifty.statistic, 413);
  EXPECT_NEAR(fifty.p_value, 0.029727315082014982, 1e-15);
  EXPECT_EQ(fifty.method, WilcoxonMethod::exact);
  const WilcoxonTest sixty = wilcoxon_signed_rank(approximate);
  EXPECT_EQ(sixty.statistic, 583);
  EXPECT_NEAR(sixty.p_value, 0.02263320893600752, 1e-15);
  EXPECT_EQ(sixty.method, WilcoxonMethod::normal);
  EXPECT_FALSE(sixty.interval);
}

TEST(Wilcoxon, FewOrNoDifferences) {
  const WilcoxonTest one = wilcoxon_signed_rank(std::vector{3.0});
  EXPECT_EQ(one.statistic, 0);
  EXPECT_EQ(one.p_value, 1);  // scipy.stats.wilcoxon([3.])
  EXPECT_FALSE(one.interval);
  const WilcoxonTest none = wilcoxon_signed_rank(std::vector<double>(4, 0.0));
  EXPECT_EQ(none.p_value, 1);
  EXPECT_EQ(none.n_used, 0u);
  EXPECT_EQ(none.n_zeros, 4u);
  EXPECT_FALSE(wilcoxon_signed_rank(std::vector<double>{1, 2, 3, 4, 5}).interval);  // at most 93.75 %
  const auto six = wilcoxon_signed_rank(std::vector<double>{1, 2, 3, 4, 5, 6}).interval;
  ASSERT_TRUE(six);
  EXPECT_EQ(six->low, 1);
  EXPECT_EQ(six->high, 6);
  EXPECT_DOUBLE_EQ(six->level, 1 - 2.0 / 64);
}

TEST(Holm, AsStatsmodels) {
  // statsmodels.stats.multitest.multipletests(p, method='holm')[1]
  const auto near = [](double value) { return DoubleNear(value, 1e-15); };
  EXPECT_THAT(holm(std::vector{0.01, 0.04, 0.03, 0.005, 0.5}),
              ElementsAre(near(0.04), near(0.09), near(0.09), near(0.025), near(0.5)));
  EXPECT_THAT(holm(std::vector{0.2, 0.2, 0.9, 0.6, 0.01, 0.01}),
              ElementsAre(near(0.8), near(0.8), near(1), near(1), near(0.06), near(0.06)));
  EXPECT_THAT(holm(std::vector{0.03}), ElementsAre(0.03));
  EXPECT_THAT(holm({}), IsEmpty());
}

TEST(Paired, RefusesBadInput) {
  expect_refused([] { paired_t(std::vector{1.0}); }, Exit::data, "too few values; got 1, expected at least 2");
  expect_refused([] { paired_t(std::vector{1.0, nan}); }, Exit::data, "[paired t-test] value 2 of 2 is not finite");
  expect_refused([] { corrected_resampled_t(folds, -0.1); }, Exit::usage, "ratio of test to training size; got -0.1");
  expect_refused([] { corrected_resampled_t(folds, nan); }, Exit::usage, "got nan");
  expect_refused([] { corrected_resampled_t(folds, inf); }, Exit::usage, "got inf");
  expect_refused([] { paired_t(folds, 1); }, Exit::usage, "confidence level; got 1");
  expect_refused([] { wilcoxon_signed_rank({}); }, Exit::data, "too few values; got 0");
  expect_refused([] { wilcoxon_signed_rank(std::vector{inf}); }, Exit::data,
                 "[Wilcoxon signed-rank test] value 1 of 1");
  expect_refused([] { wilcoxon_signed_rank(folds, 0); }, Exit::usage, "confidence level; got 0");
  expect_refused([] { holm(std::vector{0.1, nan}); }, Exit::data, "wrong p value; got nan");
  expect_refused([] { holm(std::vector{1.5}); }, Exit::data, "wrong p value; got 1.5");
}

}  // namespace
}  // namespace normlab
