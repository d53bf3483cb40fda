// Tests of paired differences between two schemes over the same folds, and Holm's correction over several tests.
//
// The folds of a cross-validation share most of their training data, so their differences are correlated and the
// plain paired t-test finds too much. Nadeau and Bengio (Machine Learning 52, 2003) replace the variance s^2 / n of
// the mean by s^2 (1/n + n_test / n_train). That is an approximation: cautious for estimators that hardly change with
// their training data, and somewhat bold for those that change very much.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "normlab/stats/summary.h"

namespace normlab {

struct TTest {
  double mean = 0;
  double standard_error = 0;  // of the mean, with the correction if there is one
  double statistic = 0;
  double df = 0;
  double p_value = 1;      // two-sided, as all p values here
  Interval interval = {};  // of the mean
  // All differences equal: the statistic is 0 or infinite and the p value 1 or 0, as limits, not as evidence.
  bool no_spread = false;
};
TTest paired_t(std::span<const double> differences, double level = 0.95);

// `test_train_ratio` = n_test / n_train: 1 / (k - 1) for k folds.
TTest corrected_resampled_t(std::span<const double> differences, double test_train_ratio, double level = 0.95);

enum class WilcoxonMethod {
  exact,       // distribution of the ranks 1..n
  exact_ties,  // distribution of the average ranks that the data has
  normal,      // more than 50 differences: normal approximation with tie correction
};

struct WilcoxonTest {
  double statistic = 0;  // the smaller of the two rank sums
  double rank_sum_positive = 0;
  double rank_sum_negative = 0;
  double p_value = 1;
  size_t n_used = 0;  // differences that are not zero; zeros are left out before ranking, as Wilcoxon did
  size_t n_zeros = 0;
  WilcoxonMethod method = WilcoxonMethod::exact;
  // Of the pseudo-median, by Hodges and Lehmann; `level` is the exact confidence, at least the one asked for.
  // Absent where no interval reaches it (95 % needs 6 differences) and beyond 50 differences.
  std::optional<Interval> interval;
};
WilcoxonTest wilcoxon_signed_rank(std::span<const double> differences, double level = 0.95);

// Adjusted p values in the order given; rejecting those <= alpha keeps the family-wise error <= alpha.
std::vector<double> holm(std::span<const double> p_values);

// An interval for each test that excludes 0 exactly where its adjusted p value is at most `alpha`. Holm rejects the
// j-th smallest of m p values against alpha / (m - j + 1): that is the error of its interval, and the error of the
// step at which Holm stops is that of all others. So no interval wrongly excludes 0 with a probability above alpha, as
// no test wrongly rejects; that all intervals cover their means at once is not promised.
std::vector<Interval> holm_intervals(std::span<const TTest> tests, double alpha);

}  // namespace normlab
