// Bootstrap intervals: both kinds resample indices, so the method is written once.
#include "normlab/stats/bootstrap.h"

#include <algorithm>
#include <boost/math/distributions/normal.hpp>
#include <cmath>
#include <numeric>
#include <optional>
#include <vector>

#include "normlab/base/error.h"
#include "normlab/base/random.h"
#include "normlab/base/text.h"

namespace normlab {

namespace {

using Indices = std::vector<size_t>;
using IndexStatistic = std::function<double(const Indices&)>;

double require_defined(double value) {
  if (std::isfinite(value)) return value;
  throw DataError("bootstrap",
                  "the statistic of a resample is not finite; got nan or inf, expected a number. "
                  "Choose a statistic defined for repeated values.");
}

void require_options(const BootstrapOptions& options) {
  require_level("bootstrap", options.level);
  if (options.resamples < 100 || options.resamples > 10'000'000)
    throw UsageError("bootstrap", concat("wrong number of resamples; got ", options.resamples,
                                         ", expected 100 to 10000000. 9999 is a good choice."));
}

// Draws n of n indices with replacement, ascending: a resample that only reorders the sample then equals the estimate
// to the last bit, and rounding cannot bias the share below it, which matters for few values.
void draw_resample(uint64_t key, std::vector<size_t>& counts, Indices& drawn) {
  const size_t n = drawn.size();
  counts.assign(n, 0);
  for (size_t i = 0; i < n; ++i) ++counts[draw_below(key, i, n)];
  auto next = drawn.begin();
  for (size_t i = 0; i < n; ++i) next = std::fill_n(next, counts[i], i);
}

// The statistic of every resample, ascending.
std::vector<double> replicates(size_t n, const IndexStatistic& statistic, const BootstrapOptions& options) {
  std::vector<double> values(static_cast<size_t>(options.resamples));
  std::vector<size_t> counts;
  Indices drawn(n);
  for (size_t resample = 0; resample < values.size(); ++resample) {
    draw_resample(stream_key(options.seed, resample), counts, drawn);
    values[resample] = require_defined(statistic(drawn));
  }
  std::sort(values.begin(), values.end());
  return values;
}

// Skewness of the influence of each value on the statistic, from leaving it out; none when no value has influence.
std::optional<double> acceleration(size_t n, const IndexStatistic& statistic) {
  std::vector<double> without(n);
  Indices kept(n - 1);
  for (size_t left_out = 0; left_out < n; ++left_out) {
    for (size_t i = 0; i + 1 < n; ++i) kept[i] = i + (i >= left_out);
    without[left_out] = require_defined(statistic(kept));
  }
  const double centre = mean(without), spread = standard_deviation(without);
  if (spread == 0) return std::nullopt;
  double cubes = 0;
  for (double value : without) cubes += std::pow((centre - value) / spread, 3);
  return cubes / (6 * std::pow(static_cast<double>(n - 1), 1.5));
}

// The normal quantile of the share of replicates below the estimate, counting equal ones half.
std::optional<double> bias(std::span<const double> ascending, double estimate) {
  const auto [first, last] = std::equal_range(ascending.begin(), ascending.end(), estimate);
  const auto below = static_cast<double>((first - ascending.begin()) + (last - ascending.begin()));
  const double share = below / (2 * static_cast<double>(ascending.size()));
  if (share <= 0 || share >= 1) return std::nullopt;
  return quantile(boost::math::normal(), share);
}

struct Correction {
  double bias = 0;
  double acceleration = 0;
};

// The share of replicates below the end of a one-sided normal interval at z.
std::optional<double> corrected_share(const Correction& correction, double z) {
  const double shifted = correction.bias + z;
  const double divisor = 1 - correction.acceleration * shifted;
  if (divisor <= 0) return std::nullopt;
  return cdf(boost::math::normal(), correction.bias + shifted / divisor);
}

BootstrapInterval bootstrap_indices(size_t n, const IndexStatistic& statistic, const BootstrapOptions& options) {
  Indices all(n);
  std::iota(all.begin(), all.end(), size_t{0});
  const double estimate = require_defined(statistic(all));
  const std::vector<double> ascending = replicates(n, statistic, options);
  const double tail = (1 - options.level) / 2;
  const double z = quantile(boost::math::normal(), tail);

  std::optional<double> low, high;
  const std::optional<double> z0 = bias(ascending, estimate), skew = acceleration(n, statistic);
  if (z0 && skew) {
    low = corrected_share({*z0, *skew}, z);
    high = corrected_share({*z0, *skew}, -z);
  }
  const bool defined = low && high;
  return {.estimate = estimate,
          .standard_error = standard_deviation(ascending),
          .interval = {sorted_quantile(ascending, defined ? *low : tail),
                       sorted_quantile(ascending, defined ? *high : 1 - tail), options.level},
          .method = defined ? BootstrapMethod::bca : BootstrapMethod::percentile};
}

void gather(std::span<const double> values, const Indices& indices, std::vector<double>& out) {
  out.resize(indices.size());
  std::transform(indices.begin(), indices.end(), out.begin(), [&](size_t i) { return values[i]; });
}

}  // namespace

BootstrapInterval bootstrap(std::span<const double> sample, const Statistic& statistic,
                            const BootstrapOptions& options) {
  require_sample("bootstrap", sample, 2);
  require_options(options);
  std::vector<double> resample;
  return bootstrap_indices(
      sample.size(),
      [&](const Indices& indices) {
        gather(sample, indices, resample);
        return statistic(resample);
      },
      options);
}

BootstrapInterval bootstrap_paired(std::span<const double> first, std::span<const double> second,
                                   const PairedStatistic& statistic, const BootstrapOptions& options) {
  require_sample("bootstrap", first, 2);
  require_sample("bootstrap", second, 2);
  require_options(options);
  if (first.size() != second.size())
    throw DataError("bootstrap", concat("pairs need samples of one size; got ", first.size(), " and ", second.size(),
                                        ", expected the same number. Keep the folds that both have."));
  std::vector<double> resample_first, resample_second;
  return bootstrap_indices(
      first.size(),
      [&](const Indices& indices) {
        gather(first, indices, resample_first);
        gather(second, indices, resample_second);
        return statistic(resample_first, resample_second);
      },
      options);
}

}  // namespace normlab
