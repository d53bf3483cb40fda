// Paired t-tests on Boost.Math; Wilcoxon's distribution by dynamic programming over doubled ranks.
#include "normlab/stats/paired.h"

#include <algorithm>
#include <boost/math/distributions/normal.hpp>
#include <boost/math/distributions/students_t.hpp>
#include <cmath>
#include <limits>
#include <numeric>

#include "normlab/base/error.h"
#include "normlab/base/text.h"

namespace normlab {

namespace {

constexpr size_t exact_limit = 50;  // as SciPy's method='auto'

// P(sum of the positive ranks = s / 2) at index s, each rank positive or negative with probability one half.
// Average ranks are multiples of one half: doubled, they are integers.
std::vector<double> signed_rank_distribution(std::span<const double> ranks) {
  std::vector<double> probability{1};
  for (double rank : ranks) {
    const auto step = static_cast<size_t>(std::lround(2 * rank));
    std::vector<double> next(probability.size() + step, 0.0);
    for (size_t s = 0; s < probability.size(); ++s) {
      next[s] += probability[s] / 2;
      next[s + step] += probability[s] / 2;
    }
    probability = std::move(next);
  }
  return probability;
}

// The distribution is symmetric: the smaller rank sum decides both tails.
double exact_p(std::span<const double> ranks, double smaller_sum) {
  const std::vector<double> probability = signed_rank_distribution(ranks);
  const auto last = static_cast<long>(std::lround(2 * smaller_sum));
  return std::min(1.0, 2 * std::accumulate(probability.begin(), probability.begin() + last + 1, 0.0));
}

double normal_p(const Ranks& ranks, double smaller_sum) {
  const auto n = static_cast<double>(ranks.ranks.size());
  const double expected = n * (n + 1) / 4;
  const double variance = (n * (n + 1) * (2 * n + 1) - ranks.tie_sum / 2) / 24;
  return 2 * cdf(boost::math::normal(), (smaller_sum - expected) / std::sqrt(variance));
}

// Inverts the test: the pseudo-medians that it does not reject lie between two of the sorted pairwise means.
std::optional<Interval> hodges_lehmann_interval(std::span<const double> differences, double level) {
  const size_t n = differences.size();
  if (n > exact_limit) return std::nullopt;
  std::vector<double> pair_means, untied_ranks(n);
  for (size_t i = 0; i < n; ++i)
    for (size_t j = i; j < n; ++j) pair_means.push_back(std::midpoint(differences[i], differences[j]));
  std::sort(pair_means.begin(), pair_means.end());

  std::iota(untied_ranks.begin(), untied_ranks.end(), 1.0);
  const std::vector<double> probability = signed_rank_distribution(untied_ranks);
  size_t cut = 0;
  double tail = 0;  // P(rank sum < cut); doubled, the error of the interval
  while (tail + probability[2 * cut] <= (1 - level) / 2) tail += probability[2 * cut++];
  if (cut == 0) return std::nullopt;
  return Interval{pair_means[cut - 1], pair_means[pair_means.size() - cut], 1 - 2 * tail};
}

// With the probability `error` that it misses the mean.
Interval t_interval(const TTest& test, double error) {
  const double half_width = test.standard_error * quantile(complement(boost::math::students_t(test.df), error / 2));
  return {test.mean - half_width, test.mean + half_width, 1 - error};
}

std::vector<size_t> ascending_order(std::span<const double> values) {
  std::vector<size_t> order(values.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return values[a] < values[b]; });
  return order;
}

}  // namespace

TTest paired_t(std::span<const double> differences, double level) {
  return corrected_resampled_t(differences, 0, level);
}

TTest corrected_resampled_t(std::span<const double> differences, double test_train_ratio, double level) {
  const std::string where = "paired t-test";
  require_sample(where, differences, 2);
  require_level(where, level);
  if (!(test_train_ratio >= 0 && std::isfinite(test_train_ratio)))
    throw UsageError(where, concat("wrong ratio of test to training size; got ", format_number(test_train_ratio),
                                   ", expected a number from 0. With k folds it is 1 / (k - 1)."));
  const auto n = static_cast<double>(differences.size());
  const double spread = standard_deviation(differences);
  TTest test{.mean = spread == 0 ? differences[0] : mean(differences),
             .standard_error = spread * std::sqrt(1 / n + test_train_ratio),
             .df = n - 1};
  test.no_spread = test.standard_error == 0;
  const boost::math::students_t distribution(test.df);
  if (!test.no_spread) {
    test.statistic = test.mean / test.standard_error;
    test.p_value = 2 * cdf(complement(distribution, std::fabs(test.statistic)));
  } else if (test.mean != 0) {
    test.statistic = std::copysign(std::numeric_limits<double>::infinity(), test.mean);
    test.p_value = 0;
  }
  test.interval = t_interval(test, 1 - level);
  test.interval.level = level;
  return test;
}

WilcoxonTest wilcoxon_signed_rank(std::span<const double> differences, double level) {
  const std::string where = "Wilcoxon signed-rank test";
  require_sample(where, differences);
  require_level(where, level);
  std::vector<double> used, sizes;
  std::copy_if(differences.begin(), differences.end(), std::back_inserter(used), [](double d) { return d != 0; });
  std::transform(used.begin(), used.end(), std::back_inserter(sizes), [](double d) { return std::fabs(d); });

  WilcoxonTest test{.n_used = used.size(),
                    .n_zeros = differences.size() - used.size(),
                    .interval = hodges_lehmann_interval(differences, level)};
  if (used.empty()) return test;  // nothing to rank: p = 1
  const Ranks ranks = average_ranks(sizes);
  for (size_t i = 0; i < used.size(); ++i)
    (used[i] > 0 ? test.rank_sum_positive : test.rank_sum_negative) += ranks.ranks[i];
  test.statistic = std::min(test.rank_sum_positive, test.rank_sum_negative);
  if (used.size() > exact_limit) {
    test.method = WilcoxonMethod::normal;
    test.p_value = normal_p(ranks, test.statistic);
  } else {
    test.method = ranks.tied.empty() ? WilcoxonMethod::exact : WilcoxonMethod::exact_ties;
    test.p_value = exact_p(ranks.ranks, test.statistic);
  }
  return test;
}

std::vector<double> holm(std::span<const double> p_values) {
  for (double p : p_values)
    if (!(p >= 0 && p <= 1))
      throw DataError("Holm's correction", concat("wrong p value; got ", format_number(p),
                                                  ", expected 0 to 1. Leave out comparisons that have none."));
  const size_t n = p_values.size();
  const std::vector<size_t> order = ascending_order(p_values);
  std::vector<double> adjusted(n);
  double largest = 0;  // an adjusted p value is never below that of a smaller p value
  for (size_t i = 0; i < n; ++i) {
    largest = std::max(largest, std::min(1.0, static_cast<double>(n - i) * p_values[order[i]]));
    adjusted[order[i]] = largest;
  }
  return adjusted;
}

std::vector<Interval> holm_intervals(std::span<const TTest> tests, double alpha) {
  require_level("Holm's intervals", 1 - alpha);
  std::vector<double> p_values;
  for (const TTest& test : tests) p_values.push_back(test.p_value);
  const std::vector<double> adjusted = holm(p_values);
  const std::vector<size_t> order = ascending_order(p_values);
  const auto rejected =
      static_cast<size_t>(std::count_if(adjusted.begin(), adjusted.end(), [&](double p) { return p <= alpha; }));
  std::vector<Interval> intervals(tests.size());
  for (size_t place = 0; place < tests.size(); ++place) {
    const TTest& test = tests[order[place]];
    Interval& interval = intervals[order[place]];
    interval = t_interval(test, alpha / static_cast<double>(tests.size() - std::min(place, rejected)));
    // At the very edge rounding could part p value and interval.
    double& nearer = test.mean < 0 ? interval.high : interval.low;
    if (place < rejected && nearer * test.mean <= 0)
      nearer = std::copysign(std::numeric_limits<double>::min(), test.mean);
    if (place >= rejected && nearer * test.mean > 0) nearer = 0;
  }
  return intervals;
}

}  // namespace normlab
