#include "stats/huber_fit.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <numeric>

#include "draws.h"

namespace normlab {
namespace {

// f = theta_0 + theta_1 x
CurveModel line_through(const Eigen::VectorXd& x) {
  return [&x](const Eigen::VectorXd& theta, Eigen::VectorXd& predicted, Eigen::MatrixXd& derivatives) {
    predicted = theta[0] + theta[1] * x.array();
    derivatives.col(0).setOnes();
    derivatives.col(1) = x;
  };
}

TEST(HuberFit, IgnoresAnOutlierThatLeastSquaresDoesNot) {
  const Eigen::VectorXd x = Eigen::VectorXd::LinSpaced(21, -1, 1);
  Eigen::VectorXd y = 0.3 + 2 * x.array();
  y[20] += 5;
  const std::vector<Eigen::VectorXd> starts = {Eigen::Vector2d(0, 0), Eigen::Vector2d(5, -5)};
  const CurveFit robust = fit_curve(line_through(x), y, starts, {.delta = 1e-3});
  EXPECT_NEAR(robust.theta[0], 0.3, 1e-3);
  EXPECT_NEAR(robust.theta[1], 2.0, 1e-3);
  EXPECT_NEAR(robust.residuals[20], 5, 2e-3);
  const CurveFit squares = fit_curve(line_through(x), y, starts, {.delta = 100});
  EXPECT_GT(squares.theta[1], 2.3);
}

TEST(HuberFit, FindsTheBestOfItsStarts) {
  // Two minima of (theta^2 - 1)^2 + 0.1 (theta - 1) as one value; the lower one is near -1.
  const CurveModel model = [](const Eigen::VectorXd& theta, Eigen::VectorXd& predicted, Eigen::MatrixXd& derivatives) {
    const double t = theta[0], square = t * t - 1;
    predicted = Eigen::VectorXd::Constant(1, square * square + 0.1 * (t - 1) + 1);
    derivatives(0, 0) = 4 * t * square + 0.1;
  };
  const Eigen::VectorXd goal = Eigen::VectorXd::Zero(1);
  const auto at = [](double t) { return Eigen::VectorXd::Constant(1, t); };
  EXPECT_GT(fit_curve(model, goal, {at(1.2)}, {}).theta[0], 0.9);
  EXPECT_LT(fit_curve(model, goal, {at(1.2), at(-1.2)}, {}).theta[0], -0.9);
}

TEST(HuberFit, NoiseIsCentredAndWidened) {
  const Eigen::VectorXd residuals = Eigen::VectorXd::LinSpaced(10, 1, 2);
  double sum = 0, squares = 0;
  for (uint64_t key = 0; key < 2000; ++key) {
    const Eigen::VectorXd noise = resampled_noise(residuals, 5, key);
    sum += noise.sum(), squares += noise.squaredNorm();
  }
  const double variance = (residuals.array() - 1.5).square().mean();
  EXPECT_NEAR(sum / 20000, 0, 3 * std::sqrt(2 * variance / 20000));
  EXPECT_NEAR(squares / 20000, 2 * variance, 0.03 * variance);  // n / (n - p) = 2
}

TEST(HuberFit, IntervalsGrowAsDegreesOfFreedomShrink) {
  std::vector<double> replicates(10001);
  std::iota(replicates.begin(), replicates.end(), 0);
  const Interval many = expanded_percentile(replicates, 1e6), few = expanded_percentile(replicates, 5);
  EXPECT_NEAR(many.low, 250, 1);  // the plain percentiles
  EXPECT_NEAR(many.high, 9750, 1);
  EXPECT_NEAR(few.low, 50.8, 1);  // P(normal < -2.5706), Student's quantile with 5 degrees of freedom
  EXPECT_NEAR(few.high, 10000 - 50.8, 1);
}

TEST(HuberFit, ReplicatesThatAreNotFiniteCountAsLarge) {
  std::vector<double> replicates(1000, 1.0);
  for (size_t i = 0; i < 100; ++i) replicates[i] = i % 2 ? std::nan("") : std::numeric_limits<double>::infinity();
  const Interval interval = expanded_percentile(replicates, 1e6);
  EXPECT_EQ(interval.low, 1);
  EXPECT_TRUE(std::isinf(interval.high));
}

TEST(HuberFit, LogSumExpOfLargeTerms) {
  Eigen::MatrixXd terms(2, 2), shares;
  terms << 1000, 1000, -1000, -1000 + std::log(3.0);
  const Eigen::VectorXd sums = log_sum_exp(terms, shares);
  EXPECT_DOUBLE_EQ(sums[0], 1000 + std::log(2.0));
  EXPECT_DOUBLE_EQ(sums[1], -1000 + std::log(4.0));
  EXPECT_NEAR(shares(1, 1), 0.75, 1e-12);
}

}  // namespace
}  // namespace normlab
