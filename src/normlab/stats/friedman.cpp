// The Friedman test, and the distribution of the range of normal values by numerical integration.
#include "normlab/stats/friedman.h"

#include <algorithm>
#include <boost/math/distributions/chi_squared.hpp>
#include <boost/math/distributions/fisher_f.hpp>
#include <boost/math/distributions/normal.hpp>
#include <boost/math/quadrature/gauss_kronrod.hpp>
#include <boost/math/tools/toms748_solve.hpp>
#include <cmath>
#include <limits>
#include <numeric>

#include "normlab/base/error.h"
#include "normlab/base/text.h"

namespace normlab {

namespace {

void require_table(std::span<const std::vector<double>> folds) {
  const std::string where = "Friedman test";
  if (folds.size() < 2)
    throw DataError(where, concat("too few folds; got ", folds.size(), ", expected at least 2. Add folds or seeds."));
  for (const std::vector<double>& fold : folds) {
    require_sample(where, fold);
    if (fold.size() != folds[0].size() || fold.size() < 2)
      throw DataError(where, concat("folds need the same schemes; got a row of ", fold.size(), ", expected ",
                                    std::max<size_t>(folds[0].size(), 2), ". Keep the folds that all schemes have."));
  }
}

// The probability that all folds rank as the first did, when every order is as likely.
double agreement_probability(const Ranks& first, size_t n_folds) {
  double log_orders = std::lgamma(static_cast<double>(first.ranks.size()) + 1);
  for (size_t size : first.tied) log_orders -= std::lgamma(static_cast<double>(size) + 1);
  return std::exp(-log_orders * static_cast<double>(n_folds - 1));
}

}  // namespace

FriedmanTest friedman(std::span<const std::vector<double>> folds) {
  require_table(folds);
  const auto n = static_cast<double>(folds.size()), k = static_cast<double>(folds[0].size());
  const Ranks first = average_ranks(folds[0]);
  FriedmanTest test{.average_ranks = std::vector<double>(folds[0].size(), 0.0),
                    .df = k - 1,
                    .f_df1 = k - 1,
                    .f_df2 = (k - 1) * (n - 1)};
  double tie_sum = 0;
  bool all_alike = true;
  for (const std::vector<double>& fold : folds) {
    const Ranks ranks = average_ranks(fold);
    tie_sum += ranks.tie_sum;
    all_alike = all_alike && ranks.ranks == first.ranks;
    for (size_t i = 0; i < ranks.ranks.size(); ++i) test.average_ranks[i] += ranks.ranks[i] / n;
  }
  const double untied_share = 1 - tie_sum / (n * k * (k * k - 1));
  if (untied_share <= 0) return test;  // every fold ties all schemes: statistics 0, p = 1

  double spread = 0;
  for (double rank : test.average_ranks) spread += std::pow(rank - (k + 1) / 2, 2);
  test.chi_square = 12 * n / (k * (k + 1)) * spread / untied_share;
  test.p_value = cdf(complement(boost::math::chi_squared(test.df), test.chi_square));
  if (all_alike) {
    test.f = std::numeric_limits<double>::infinity();
    test.f_p_value = agreement_probability(first, folds.size());
  } else {
    test.f = (n - 1) * test.chi_square / (n * (k - 1) - test.chi_square);
    test.f_p_value = cdf(complement(boost::math::fisher_f(test.f_df1, test.f_df2), test.f));
  }
  return test;
}

// P(range <= r) = k int phi(z) [Phi(z) - Phi(z - r)]^(k-1) dz, where z is the largest value.
double normal_range_cdf(double range, size_t k) {
  if (std::isnan(range) || k < 2)
    throw UsageError("normal range", concat("wrong argument; got range ", format_number(range), " of ", k,
                                            " values, expected a number and at least 2 values. "
                                            "Compare two schemes or more."));
  if (range <= 0) return 0;
  const boost::math::normal normal;
  const auto density = [&](double z) {
    return pdf(normal, z) * std::pow(cdf(normal, z) - cdf(normal, z - range), static_cast<double>(k - 1));
  };
  constexpr double bound = 10;  // beyond it the density is below 1e-22
  const double integral =
      boost::math::quadrature::gauss_kronrod<double, 61>::integrate(density, -bound, bound, 8, 1e-13);
  return std::min(1.0, static_cast<double>(k) * integral);
}

double normal_range_quantile(double probability, size_t k) {
  require_level("normal range", probability);
  double high = 1;
  while (high < 64 && normal_range_cdf(high, k) < probability) high *= 2;
  std::uintmax_t iterations = 100;
  const auto [below, above] =
      boost::math::tools::toms748_solve([&](double range) { return normal_range_cdf(range, k) - probability; }, 0.0,
                                        high, boost::math::tools::eps_tolerance<double>(45), iterations);
  return std::midpoint(below, above);
}

double nemenyi_critical_difference(size_t n_schemes, size_t n_folds, double level) {
  if (n_folds < 1)
    throw DataError("Nemenyi's critical difference", "too few folds; got 0, expected at least 1. Add folds.");
  const auto k = static_cast<double>(n_schemes), n = static_cast<double>(n_folds);
  return normal_range_quantile(level, n_schemes) / std::sqrt(2.0) * std::sqrt(k * (k + 1) / (6 * n));
}

}  // namespace normlab
