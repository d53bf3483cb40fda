// Compute-optimal frontiers, and one scheme's against another's.
#include "normlab/stats/scaling_frontier.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace normlab {

Optimum optimum(const ScalingLaw& law, double flops, double flops_per_param_token) {
  const double a = law.exp_params, b = law.exp_tokens, product = flops / flops_per_param_token;
  const double g = std::pow(a * law.a_params / (b * law.b_tokens), 1 / (a + b));
  const double n_params = g * std::pow(product, b / (a + b));
  const double n_tokens = product / n_params;
  if (!(a > 0) || !(b > 0)) return {std::nan(""), std::nan(""), std::nan("")};
  return {n_params, n_tokens, law.loss(n_params, n_tokens)};
}

double exp_compute(const ScalingLaw& law) {
  return law.exp_params * law.exp_tokens / (law.exp_params + law.exp_tokens);
}

double exp_optimal_params(const ScalingLaw& law) { return law.exp_tokens / (law.exp_params + law.exp_tokens); }

double flops_for_loss(const ScalingLaw& law, double loss, double flops_per_param_token) {
  if (loss <= law.floor) return std::numeric_limits<double>::infinity();
  const double above_floor = optimum(law, 1.0, flops_per_param_token).loss - law.floor;  // K
  return std::pow((loss - law.floor) / above_floor, -1 / exp_compute(law));
}

Advantage advantage(const LawOfScheme& baseline, const LawOfScheme& rival, double flops) {
  const auto difference = [&](const ScalingLaw& theirs, const ScalingLaw& ours) {
    return optimum(ours, flops, rival.flops_per_param_token).loss -
           optimum(theirs, flops, baseline.flops_per_param_token).loss;
  };
  const auto factor = [&](const ScalingLaw& theirs, const ScalingLaw& ours) {
    const double loss = optimum(ours, flops, rival.flops_per_param_token).loss;
    return flops_for_loss(theirs, loss, baseline.flops_per_param_token) / flops;
  };
  const auto estimate = [&](const auto& value) {
    std::vector<double> replicates;
    const size_t n = std::min(baseline.fit.replicates.size(), rival.fit.replicates.size());
    for (size_t i = 0; i < n; ++i) replicates.push_back(value(baseline.fit.replicates[i], rival.fit.replicates[i]));
    Estimate out{.value = value(baseline.fit.law, rival.fit.law)};
    if (n > 0) out.interval = expanded_percentile(std::move(replicates), std::min(baseline.fit.df, rival.fit.df));
    return out;
  };
  return {.flops = flops, .loss_difference = estimate(difference), .compute_factor = estimate(factor)};
}

}  // namespace normlab
