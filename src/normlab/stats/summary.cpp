// Summary numbers of a sample: two-pass moments, interpolated quantiles, average ranks.
#include "normlab/stats/summary.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "normlab/base/error.h"
#include "normlab/base/text.h"

namespace normlab {

namespace {

// Finite data may still overflow a sum or a square.
double require_finite(const std::string& where, double result) {
  if (!std::isfinite(result))
    throw DataError(where,
                    "the values are too large to sum; got an overflow, expected magnitudes below 1e300. "
                    "Check the run for divergence.");
  return result;
}

std::vector<double> ascending(std::span<const double> values) {
  std::vector<double> sorted(values.begin(), values.end());
  std::sort(sorted.begin(), sorted.end());
  return sorted;
}

}  // namespace

void require_sample(const std::string& where, std::span<const double> values, size_t at_least) {
  if (values.size() < at_least)
    throw DataError(where, concat("too few values; got ", values.size(), ", expected at least ", at_least,
                                  ". Add folds or seeds."));
  for (size_t i = 0; i < values.size(); ++i)
    if (!std::isfinite(values[i]))
      throw DataError(where, concat("value ", i + 1, " of ", values.size(), " is not finite; got ",
                                    format_number(values[i]), ", expected a number. Leave out diverged trials first."));
}

void require_level(const std::string& where, double level) {
  if (!(level > 0 && level < 1))
    throw UsageError(where, concat("wrong confidence level; got ", format_number(level),
                                   ", expected a number between 0 and 1. Write 95 % as 0.95."));
}

double mean(std::span<const double> values) {
  require_sample("mean", values);
  const double n = static_cast<double>(values.size());
  const double first = std::accumulate(values.begin(), values.end(), 0.0) / n;
  require_finite("mean", first);
  double rest = 0;  // what the rounding of the first sum left over
  for (double value : values) rest += value - first;
  return require_finite("mean", first + rest / n);
}

double standard_deviation(std::span<const double> values) {
  require_sample("standard deviation", values, 2);
  // Equal values have no spread, whatever the rounding of their mean.
  if (std::all_of(values.begin(), values.end(), [&](double value) { return value == values[0]; })) return 0;
  const double centre = mean(values);
  double largest = 0;  // deviations are squared in units of it, so that no square under- or overflows
  for (double value : values) largest = std::max(largest, std::fabs(value - centre));
  double squares = 0;
  for (double value : values) squares += std::pow((value - centre) / largest, 2);
  return require_finite("standard deviation", largest * std::sqrt(squares / static_cast<double>(values.size() - 1)));
}

double standard_error(std::span<const double> values) {
  return standard_deviation(values) / std::sqrt(static_cast<double>(values.size()));
}

double sorted_quantile(std::span<const double> ascending, double q) {
  const double position = q * static_cast<double>(ascending.size() - 1);
  const auto below = static_cast<size_t>(position);
  const size_t above = std::min(below + 1, ascending.size() - 1);
  return std::lerp(ascending[below], ascending[above], position - static_cast<double>(below));
}

double quantile(std::span<const double> values, double q) {
  require_sample("quantile", values);
  if (!(q >= 0 && q <= 1))
    throw UsageError("quantile",
                     concat("wrong probability; got ", format_number(q), ", expected 0 to 1. Write 25 % as 0.25."));
  return sorted_quantile(ascending(values), q);
}

double median(std::span<const double> values) { return quantile(values, 0.5); }

BoxPlot box_plot(std::span<const double> values) {
  require_sample("box plot", values);
  const std::vector<double> sorted = ascending(values);
  BoxPlot box{.q1 = sorted_quantile(sorted, 0.25),
              .median = sorted_quantile(sorted, 0.5),
              .q3 = sorted_quantile(sorted, 0.75),
              .mean = mean(values)};
  const double reach = 1.5 * (box.q3 - box.q1);
  // An interpolated quartile can lie beyond the last datum inside; a whisker then has no length.
  box.whisker_low = std::min(box.q1, *std::lower_bound(sorted.begin(), sorted.end(), box.q1 - reach));
  box.whisker_high = std::max(box.q3, *(std::upper_bound(sorted.begin(), sorted.end(), box.q3 + reach) - 1));
  std::copy_if(sorted.begin(), sorted.end(), std::back_inserter(box.outliers),
               [&](double value) { return value < box.q1 - reach || value > box.q3 + reach; });
  return box;
}

Ranks average_ranks(std::span<const double> values) {
  require_sample("ranks", values);
  const size_t n = values.size();
  std::vector<size_t> order(n);
  std::iota(order.begin(), order.end(), size_t{0});
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) { return values[a] < values[b]; });

  Ranks result{.ranks = std::vector<double>(n)};
  for (size_t begin = 0, end = 0; begin < n; begin = end) {
    while (end < n && values[order[end]] == values[order[begin]]) ++end;
    const double shared = static_cast<double>(begin + 1 + end) / 2;
    for (size_t i = begin; i < end; ++i) result.ranks[order[i]] = shared;
    if (const auto size = static_cast<double>(end - begin); size > 1) {
      result.tied.push_back(end - begin);
      result.tie_sum += size * size * size - size;
    }
  }
  return result;
}

}  // namespace normlab
