#include "normlab/stats/scaling_frontier.h"

#include <gtest/gtest.h>

#include "scaling_points.h"

namespace normlab {
namespace {

TEST(ScalingFrontier, OptimumIsTheLeastLossOfItsCompute) {
  const double flops = 5.76e23;
  const Optimum best = optimum(chinchilla, flops, 6);
  EXPECT_NEAR(6 * best.n_params * best.n_tokens, flops, 1e-9 * flops);
  for (const double shift : {0.5, 0.9, 1.1, 2.0})
    EXPECT_GT(chinchilla.loss(shift * best.n_params, best.n_tokens / shift), best.loss) << shift;
  EXPECT_NEAR(best.n_tokens / best.n_params, 20, 6);  // Besiroglu et al.: about 20 tokens a parameter
}

TEST(ScalingFrontier, LossFallsAsAPowerOfCompute) {
  const double near = optimum(chinchilla, 1e20, 6).loss - 1.82, far = optimum(chinchilla, 1e24, 6).loss - 1.82;
  EXPECT_NEAR(std::log(near / far) / std::log(1e4), exp_compute(chinchilla), 1e-12);
  const double n_near = optimum(chinchilla, 1e20, 6).n_params, n_far = optimum(chinchilla, 1e24, 6).n_params;
  EXPECT_NEAR(std::log(n_far / n_near) / std::log(1e4), exp_optimal_params(chinchilla), 1e-12);
  EXPECT_NEAR(flops_for_loss(chinchilla, optimum(chinchilla, 1e22, 6).loss, 6), 1e22, 1e13);
  EXPECT_TRUE(std::isinf(flops_for_loss(chinchilla, 1.8, 6)));
}

TEST(ScalingFrontier, AdvantageOfAConstantFactor) {
  // Every N and D counts 1.4 fold: so does compute, twice.
  ScalingLaw better = chinchilla;
  better.a_params *= std::pow(1.4, -better.exp_params);
  better.b_tokens *= std::pow(1.4, -better.exp_tokens);
  const ScalingFit base{.law = chinchilla, .goodness = {}, .residuals = {}};
  const ScalingFit rival{.law = better, .goodness = {}, .residuals = {}};
  for (const double flops : {1e18, 1e22}) {
    const Advantage found = advantage({base}, {rival}, flops);
    EXPECT_NEAR(found.compute_factor.value, 1.96, 1e-9);
    EXPECT_LT(found.loss_difference.value, 0);
  }
  // Operations count: a rival whose steps cost 1.96 fold has no advantage left.
  EXPECT_NEAR(advantage({base, 6}, {rival, 6 * 1.96}, 1e20).compute_factor.value, 1, 1e-9);
}

TEST(ScalingFrontier, NoOptimumWithANegativeExponent) {
  ScalingLaw odd = chinchilla;
  odd.exp_params = -0.1;
  EXPECT_TRUE(std::isnan(optimum(odd, 1e20, 6).loss));
}

}  // namespace
}  // namespace normlab
