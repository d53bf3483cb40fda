// Bootstrap intervals, bias-corrected and accelerated (BCa; Efron, JASA 82, 1987), with reproducible draws.
//
// The interval supposes independent values and is too short for few of them: at a nominal 95 % it covers the mean of
// 3, 5, 10 and 50 normal values in 71, 84, 90 and 94 % of samples. Over folds prefer corrected_resampled_t.
#pragma once

#include <cstdint>
#include <functional>
#include <span>

#include "normlab/stats/summary.h"

namespace normlab {

struct BootstrapOptions {
  uint64_t seed = 0;
  int resamples = 9999;
  double level = 0.95;
};

enum class BootstrapMethod {
  bca,
  percentile,  // BCa is undefined: the statistic does not vary, or the estimate lies outside its replicates
};

struct BootstrapInterval {
  double estimate = 0;  // the statistic of the sample itself
  double standard_error = 0;
  Interval interval;
  BootstrapMethod method = BootstrapMethod::bca;
};

// A statistic must not depend on the order of its sample, and must be finite on every resample.
using Statistic = std::function<double(std::span<const double>)>;
using PairedStatistic = std::function<double(std::span<const double>, std::span<const double>)>;

BootstrapInterval bootstrap(std::span<const double> sample, const Statistic& statistic,
                            const BootstrapOptions& options = {});

// Resamples pairs (first[i], second[i]).
BootstrapInterval bootstrap_paired(std::span<const double> first, std::span<const double> second,
                                   const PairedStatistic& statistic, const BootstrapOptions& options = {});

}  // namespace normlab
