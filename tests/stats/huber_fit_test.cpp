#include "normlab/stats/huber_fit.h"

#include <gtest/gtest.h>

#include <cmath>

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

TEST(HuberFit, WeightsCountAsRepeatedPoints) {
  const Eigen::VectorXd x = Eigen::VectorXd::LinSpaced(5, -1, 1);
  Eigen::VectorXd y(5), weights(5), long_x(6), long_y(6);
  y << 0.1, -0.4, 0.8, 0.2, 1.5;
  weights << 1, 3, 0, 1, 1;
  long_x << x[0], x[1], x[1], x[1], x[3], x[4];
  long_y << y[0], y[1], y[1], y[1], y[3], y[4];
  const Eigen::Vector2d start(0, 0);
  const CurveFit weighted = descend(line_through(x), y, start, 10, weights);
  const CurveFit repeated = descend(line_through(long_x), long_y, start, 10);
  EXPECT_LT((weighted.theta - repeated.theta).norm(), 1e-6);
  EXPECT_NEAR(weighted.objective, repeated.objective, 1e-12);
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
