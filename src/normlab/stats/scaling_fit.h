// Scaling laws of the final loss in parameters N and tokens D.
//
//   L(N, D) = E + A / N^a + B / D^b                            Hoffmann et al. 2022, arXiv 2203.15556
//   L(N, D) = ((N_c / N)^(a_N / a_D) + D_c / D)^a_D            Kaplan et al. 2020, arXiv 2001.08361
//
// Both are fitted to log L with Huber's loss (huber_fit.h), the first from Hoffmann et al.'s full grid of 4,500 starts,
// as log-sum-exp of log E, log A - a log N and log B - b log D.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "normlab/stats/curve_bootstrap.h"

namespace normlab {

struct ScalingPoint {
  double n_params = 0, n_tokens = 0;
  double loss = 0;  // nats per token
};

struct ScalingLaw {
  double floor = 0, a_params = 0, b_tokens = 0, exp_params = 0, exp_tokens = 0;
  double loss(double n_params, double n_tokens) const;
};

struct KaplanLaw {
  double n_critical = 0, d_critical = 0, exp_params = 0, exp_tokens = 0;
  double loss(double n_params, double n_tokens) const;
};

// How well a law with so many parameters describes the points; residuals are those of log loss.
struct Goodness {
  double r_squared = 0;
  double rms = 0;      // sqrt(sum of squares / (n - parameters)): 0.01 is about one percent of the loss
  double largest = 0;  // residual, in size
};

template <class Law>
struct LawFit {
  Law law;
  Goodness goodness;
  std::vector<double> residuals;     // log loss less log prediction, of each point
  std::vector<Law> replicates = {};  // of the bootstrap; empty when it was not asked for
  double df = 0;                     // points less parameters
  Resampling resampling = {};        // how the replicates were drawn, and why

  // Interval of any number that is computed from the law.
  template <class Value>
  Interval interval(const Value& value, double level = 0.95) const {
    std::vector<double> values;
    for (const Law& each : replicates) values.push_back(value(each));
    return expanded_percentile(std::move(values), df, level);
  }
};
using ScalingFit = LawFit<ScalingLaw>;
using KaplanFit = LawFit<KaplanLaw>;

inline constexpr size_t least_points = 8, least_sizes = 3;

// Refuses, as DataError that names `where`, losses and counts that are not positive and finite, fewer than 8 points,
// and fewer than 3 sizes or 3 horizons: three numbers depend on each.
void require_points(const std::string& where, std::span<const ScalingPoint> points);

// With options.resamples = 0 there is no bootstrap.
ScalingFit fit_scaling(std::span<const ScalingPoint> points, const FitOptions& options = {});
KaplanFit fit_kaplan(std::span<const ScalingPoint> points, const FitOptions& options = {});

// Do all sets of points share exp_params and exp_tokens? Statistic: by how much the fit of shared exponents is worse
// than separate fits, per exponent saved, over what separate fits leave per degree of freedom. p: its rank among
// `options.resamples` sets of points drawn from the shared fit. Their noise is that of the bootstrap of each set; in
// place of cases, which would not obey the shared fit, it is wild.
struct SharedExponents {
  double exp_params = 0, exp_tokens = 0;  // when shared
  double statistic = 0, p_value = 1;
};
SharedExponents test_shared_exponents(std::span<const std::vector<ScalingPoint>> sets, const FitOptions& options = {});

}  // namespace normlab
