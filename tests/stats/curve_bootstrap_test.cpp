// Bootstraps of curves: their draws, the test that chooses, and coverage where variances are unequal.
#include "normlab/stats/curve_bootstrap.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <limits>
#include <numeric>

#include "normlab/stats/scaling_model.h"
#include "scaling_points.h"

namespace normlab {
namespace {

TEST(CurveBootstrap, NoiseIsCentredAndWidened) {
  const Eigen::VectorXd residuals = Eigen::VectorXd::LinSpaced(10, 1, 2);
  double sum = 0, squares = 0;
  for (uint64_t key = 0; key < 2000; ++key) {
    const Eigen::VectorXd noise = resampled_noise(Bootstrap::residual, residuals, 5, key);
    sum += noise.sum(), squares += noise.squaredNorm();
  }
  const double variance = (residuals.array() - 1.5).square().mean();
  EXPECT_NEAR(sum / 20000, 0, 3 * std::sqrt(2 * variance / 20000));
  EXPECT_NEAR(squares / 20000, 2 * variance, 0.03 * variance);  // n / (n - p) = 2
}

TEST(CurveBootstrap, IntervalsGrowAsDegreesOfFreedomShrink) {
  std::vector<double> replicates(10001);
  std::iota(replicates.begin(), replicates.end(), 0);
  const Interval many = expanded_percentile(replicates, 1e6), few = expanded_percentile(replicates, 5);
  EXPECT_NEAR(many.low, 250, 1);  // the plain percentiles
  EXPECT_NEAR(many.high, 9750, 1);
  EXPECT_NEAR(few.low, 50.8, 1);  // P(normal < -2.5706), Student's quantile with 5 degrees of freedom
  EXPECT_NEAR(few.high, 10000 - 50.8, 1);
}

TEST(CurveBootstrap, ReplicatesThatAreNotFiniteCountAsLarge) {
  std::vector<double> replicates(1000, 1.0);
  for (size_t i = 0; i < 100; ++i) replicates[i] = i % 2 ? std::nan("") : std::numeric_limits<double>::infinity();
  const Interval interval = expanded_percentile(replicates, 1e6);
  EXPECT_EQ(interval.low, 1);
  EXPECT_TRUE(std::isinf(interval.high));
}

// With a standard deviation that falls as D^-0.3, by a factor of 28 over this ladder of 5 x 5 runs; or an equal one.
CentredPoints noisy_ladder(double exponent, uint64_t key) {
  std::vector<ScalingPoint> points = ladder_points(chinchilla, 5, 5, 0, 1);
  NormalDraws normal(key);
  for (ScalingPoint& point : points)
    point.loss *= std::exp(0.004 * std::pow(point.n_tokens / 2e10, exponent) * normal());
  return centred(points);
}

TEST(CurveBootstrap, WildNoiseKeepsTheSizeOfEachResidual) {
  const Eigen::VectorXd residuals = Eigen::VectorXd::LinSpaced(10, -1, 2);
  Eigen::VectorXd sum = Eigen::VectorXd::Zero(10);
  for (uint64_t key = 0; key < 1000; ++key) {
    const Eigen::VectorXd noise = resampled_noise(Bootstrap::wild, residuals, 5, key);
    ASSERT_EQ(noise.cwiseAbs(), residuals.cwiseAbs());
    sum += noise;
  }
  EXPECT_LT((sum.array() / residuals.array()).abs().maxCoeff() / 1000, 0.12);  // signs of both kinds, four deviations
}

TEST(CurveBootstrap, ResidualsOfTheFitToTheOthers) {
  const CentredPoints data = noisy_ladder(0, 3);
  const CurveModel model = scaling_model(data);
  const CurveFit fit = fit_curve(model, data.log_loss, {scaling_theta(chinchilla, data)}, {});
  const Eigen::VectorXd left_out = left_out_residuals(model, fit.theta, data.log_loss, 1e-3);
  // The fit goes almost through some points, but it does not when it has not seen them.
  EXPECT_LT((fit.residuals.array().abs() < 5e-4).count(), 13);
  EXPECT_GT((fit.residuals.array().abs() < 5e-4).count(), (left_out.array().abs() < 5e-4).count());
  EXPECT_GT(left_out.cwiseAbs().mean(), 1.1 * fit.residuals.cwiseAbs().mean());
}

TEST(CurveBootstrap, DrawsOfCasesDetermineTheParameters) {
  // Nine points: most draws have too few sizes or horizons.
  const CentredPoints data = centred(ladder_points(chinchilla, 3, 3, 0.004, 5));
  const CurveModel model = scaling_model(data);
  const CurveFit fit = fit_curve(model, data.log_loss, {scaling_theta(chinchilla, data)}, {});
  const auto thetas = bootstrap_curve(model, fit, data.log_loss, Bootstrap::cases, {.resamples = 50});
  double spread = 0;
  for (const Eigen::VectorXd& theta : thetas) {
    ASSERT_TRUE(theta.allFinite());
    spread += (theta - fit.theta).norm();
  }
  EXPECT_GT(spread, 0);
}

// scipy.stats.chi2.sf(len(x) * r ** 2, 1), r = numpy.corrcoef(numpy.abs(residuals), x)[0, 1]
TEST(CurveBootstrap, VarianceTestAsScipy) {
  Eigen::VectorXd residuals(8), x(8);
  residuals << 0.1, -0.3, 0.2, -0.6, 0.5, 0.9, -0.7, 1.1;
  x << 1, 2, 3, 4, 5, 6, 7, 8;
  const VarianceTest test = test_equal_variance(residuals, x);
  EXPECT_NEAR(test.statistic, 6.8594104308390005, 1e-12);
  EXPECT_NEAR(test.p_value, 0.00881756378577398, 1e-12);
  EXPECT_EQ(test.df, 1);
  EXPECT_EQ(test_equal_variance(Eigen::VectorXd::Constant(8, -0.2), x).p_value, 1);
}

TEST(CurveBootstrap, WhatIsAskedForIsDone) {
  Eigen::VectorXd residuals = Eigen::VectorXd::LinSpaced(30, 0.1, 3), x = residuals;
  EXPECT_EQ(choose_bootstrap(Bootstrap::automatic, residuals, x).kind, Bootstrap::cases);
  EXPECT_TRUE(choose_bootstrap(Bootstrap::automatic, residuals, x).chosen);
  EXPECT_EQ(choose_bootstrap(Bootstrap::automatic, Eigen::VectorXd::Ones(30), x).kind, Bootstrap::residual);
  for (const Bootstrap kind : {Bootstrap::residual, Bootstrap::wild, Bootstrap::cases}) {
    EXPECT_EQ(choose_bootstrap(kind, residuals, x).kind, kind);
    EXPECT_FALSE(choose_bootstrap(kind, residuals, x).chosen);
    EXPECT_LT(choose_bootstrap(kind, residuals, x).variance.p_value, 0.01);
  }
}

// How often intervals cover b_tokens' term and exp_tokens, and how often the test finds unequal variances.
struct Coverage {
  double b_tokens = 0, exp_tokens = 0, found = 0;
};
Coverage simulate(double exponent, Bootstrap asked, int simulations) {
  Coverage rates;
  for (int simulation = 0; simulation < simulations; ++simulation) {
    const CentredPoints data = noisy_ladder(exponent, stream_key(70, simulation));
    const CurveModel model = scaling_model(data);
    const Eigen::VectorXd truth = scaling_theta(chinchilla, data);
    const CurveFit fit = fit_curve(model, data.log_loss, {truth}, {});
    const Resampling chosen = choose_bootstrap(asked, fit.residuals, places_of(data));
    const FitOptions options{.resamples = 120, .seed = stream_key(71, simulation)};
    const auto thetas = bootstrap_curve(model, fit, data.log_loss, chosen.kind, options);
    const auto covers = [&](Eigen::Index k) {
      std::vector<double> values;
      for (const Eigen::VectorXd& theta : thetas) values.push_back(theta[k]);
      const Interval interval = expanded_percentile(values, static_cast<double>(data.log_loss.size()) - 5);
      return interval.low <= truth[k] && truth[k] <= interval.high;
    };
    rates.b_tokens += covers(2) / double(simulations);
    rates.exp_tokens += covers(4) / double(simulations);
    rates.found += (chosen.variance.p_value <= unequal_variance) / double(simulations);
  }
  return rates;
}

TEST(CurveBootstrapSimulation, UnequalVariancesAreCovered) {
  constexpr int simulations = 60;
  const double least = 0.95 - sampling_error(0.95, simulations);
  const Coverage residual = simulate(-0.3, Bootstrap::residual, simulations),
                 wild = simulate(-0.3, Bootstrap::wild, simulations),
                 automatic = simulate(-0.3, Bootstrap::automatic, simulations);
  EXPECT_GE(automatic.exp_tokens, least);
  EXPECT_GE(automatic.b_tokens, least);
  EXPECT_GE(automatic.found, 0.7);
  EXPECT_LT(residual.exp_tokens, least);  // runs with few tokens get the small noise of the others
  EXPECT_GT(wild.exp_tokens, residual.exp_tokens + 0.05);
}

TEST(CurveBootstrapSimulation, EqualVariancesAreFoundSeldomAndCovered) {
  constexpr int simulations = 60;
  const Coverage rates = simulate(0, Bootstrap::automatic, simulations);
  EXPECT_LE(rates.found, unequal_variance + sampling_error(unequal_variance, simulations));
  EXPECT_GE(rates.exp_tokens, 0.95 - sampling_error(0.95, simulations));
}

}  // namespace
}  // namespace normlab
