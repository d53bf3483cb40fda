// What a scaling law says about the best use of compute. With C = k N D operations (k = 6 in a plain model) the loss is
// least, for a = exp_params, b = exp_tokens, at
//
//   N = G (C/k)^(b/(a+b)),   D = (C/k)^(a/(a+b)) / G,   G = (a A / (b B))^(1/(a+b))
//   L(C) = E + K C^(-g),   g = a b / (a + b)
#pragma once

#include "normlab/stats/scaling_fit.h"

namespace normlab {

struct Optimum {
  double n_params = 0, n_tokens = 0, loss = 0;
};
// NaN where a law with a negative exponent has no optimum.
Optimum optimum(const ScalingLaw& law, double flops, double flops_per_param_token);

double exp_compute(const ScalingLaw& law);         // g
double exp_optimal_params(const ScalingLaw& law);  // b / (a + b)

// Compute with which the frontier reaches a loss; infinite at or below the floor.
double flops_for_loss(const ScalingLaw& law, double loss, double flops_per_param_token);

struct Estimate {
  double value = 0;
  Interval interval = {};
};

// A rival against a baseline on their frontiers with the same compute. Resamples of one are paired with those of the
// other at random, as if their noise were independent; runs that share data and seeds make the interval cautious.
struct Advantage {
  double flops = 0;
  Estimate loss_difference;  // rival's less baseline's
  Estimate compute_factor;   // what the baseline needs to reach the rival's loss, over `flops`
};
struct LawOfScheme {
  const ScalingFit& fit;
  double flops_per_param_token = 6;
};
Advantage advantage(const LawOfScheme& baseline, const LawOfScheme& rival, double flops);

}  // namespace normlab
