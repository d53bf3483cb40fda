// The rates that intervals and p values of scaling fits promise, in simulations with known coefficients.
#include <gtest/gtest.h>

#include <array>

#include "normlab/stats/scaling_frontier.h"
#include "scaling_points.h"

namespace normlab {
namespace {

// Three sizes of numbers: coefficients, exponents, and an extrapolation tenfold beyond the largest point.
TEST(ScalingSimulation, IntervalsCoverAtTheirRate) {
  constexpr int simulations = 40;
  std::array<int, 6> covered = {};
  for (int simulation = 0; simulation < simulations; ++simulation) {
    const auto points = ladder_points(chinchilla, 4, 3, 0.005, stream_key(30, simulation));
    const ScalingFit fit = fit_scaling(points, {.resamples = 150, .seed = stream_key(31, simulation)});
    const auto count = [&](size_t i, const auto& value) {
      const Interval interval = fit.interval(value);
      covered[i] += interval.low <= value(chinchilla) && value(chinchilla) <= interval.high;
    };
    count(0, [](const ScalingLaw& law) { return law.floor; });
    count(1, [](const ScalingLaw& law) { return law.a_params; });
    count(2, [](const ScalingLaw& law) { return law.b_tokens; });
    count(3, [](const ScalingLaw& law) { return law.exp_params; });
    count(4, [](const ScalingLaw& law) { return law.exp_tokens; });
    count(5, [](const ScalingLaw& law) { return optimum(law, 6 * 2e10 * 2e12, 6).loss; });
  }
  for (size_t i = 0; i < covered.size(); ++i)
    EXPECT_GE(covered[i] / double{simulations}, 0.95 - sampling_error(0.95, simulations)) << i;
}

TEST(ScalingSimulation, PublishedCoefficientsLieInTheirIntervals) {
  const auto points = strewn_points(chinchilla, 245, 0.005, 32);  // as many as Besiroglu et al. had
  const ScalingFit fit = fit_scaling(points, {.resamples = 200, .seed = 1});
  const auto expect_inside = [&](const char* name, const auto& value) {
    const Interval interval = fit.interval(value, 0.99);
    EXPECT_LE(interval.low, value(chinchilla)) << name;
    EXPECT_GE(interval.high, value(chinchilla)) << name;
    EXPECT_LT(interval.high - interval.low, value(chinchilla)) << name;  // it says something
  };
  expect_inside("floor", [](const ScalingLaw& law) { return law.floor; });
  expect_inside("a_params", [](const ScalingLaw& law) { return law.a_params; });
  expect_inside("b_tokens", [](const ScalingLaw& law) { return law.b_tokens; });
  expect_inside("exp_params", [](const ScalingLaw& law) { return law.exp_params; });
  expect_inside("exp_tokens", [](const ScalingLaw& law) { return law.exp_tokens; });
}

double share_rejected(const ScalingLaw& other, int simulations) {
  int rejected = 0;
  for (int simulation = 0; simulation < simulations; ++simulation) {
    const std::vector<std::vector<ScalingPoint>> sets = {
        ladder_points(chinchilla, 4, 3, 0.003, stream_key(33, simulation)),
        ladder_points(other, 4, 3, 0.003, stream_key(34, simulation))};
    rejected += test_shared_exponents(sets, {.resamples = 99, .seed = stream_key(35, simulation)}).p_value <= 0.1;
  }
  return rejected / double(simulations);
}

TEST(ScalingSimulation, SharedExponentsAreRejectedAtTheirRate) {
  // A constant factor of less compute, as anGPT's authors claim: other coefficients, the same exponents.
  const ScalingLaw shifted{.floor = 1.82, .a_params = 430, .b_tokens = 1800, .exp_params = 0.348, .exp_tokens = 0.366};
  EXPECT_LE(share_rejected(shifted, 20), 0.1 + sampling_error(0.1, 20));
}

TEST(ScalingSimulation, OtherExponentsAreFound) {
  const ScalingLaw steeper{.floor = 1.82, .a_params = 9000, .b_tokens = 2085, .exp_params = 0.5, .exp_tokens = 0.366};
  EXPECT_GE(share_rejected(steeper, 5), 0.8);
}

}  // namespace
}  // namespace normlab
