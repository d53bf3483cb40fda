#include "normlab/stats/scaling_fit.h"

#include <gtest/gtest.h>

#include "normlab/stats/scaling_model.h"
#include "refusal.h"
#include "scaling_points.h"

namespace normlab {
namespace {

constexpr FitOptions no_bootstrap{.resamples = 0};

TEST(ScalingFit, RecoversCoefficientsWithoutNoise) {
  const ScalingFit fit = fit_scaling(strewn_points(chinchilla, 50, 0.0, 1), no_bootstrap);
  EXPECT_NEAR(fit.law.floor, 1.82, 0.002);
  EXPECT_NEAR(fit.law.a_params, 482, 5);
  EXPECT_NEAR(fit.law.b_tokens, 2085, 20);
  EXPECT_NEAR(fit.law.exp_params, 0.348, 0.001);
  EXPECT_NEAR(fit.law.exp_tokens, 0.366, 0.001);
  EXPECT_LT(fit.goodness.largest, 1e-3);  // below it all that is left are squares, and the descent ends
  EXPECT_GT(fit.goodness.r_squared, 0.9999);
}

TEST(ScalingFit, RecoversSmallModelsOutsideTheGrid) {
  // Bytes and thousands of parameters: log B lies far from Hoffmann et al.'s, exponents between their starts.
  const ScalingLaw small{.floor = 0.9, .a_params = 40, .b_tokens = 900, .exp_params = 0.42, .exp_tokens = 0.55};
  std::vector<ScalingPoint> points;
  for (const double n_params : {2e4, 6e4, 2e5, 6e5})
    for (const double ratio : {5.0, 20.0, 80.0})
      points.push_back({n_params, ratio * n_params, small.loss(n_params, ratio * n_params)});
  const ScalingFit fit = fit_scaling(points, no_bootstrap);
  EXPECT_NEAR(fit.law.floor, 0.9, 0.02);
  EXPECT_NEAR(fit.law.exp_params, 0.42, 0.01);
  EXPECT_NEAR(fit.law.exp_tokens, 0.55, 0.01);
}

TEST(ScalingFit, ModelDerivativesAreThoseOfItsValues) {
  const CentredPoints data = centred(ladder_points(chinchilla, 4, 3, 0.0, 1));
  const CurveModel model = scaling_model(data);
  Eigen::VectorXd theta(5), up, down;
  theta << 0.6, -0.4, -0.9, 0.35, 0.37;
  Eigen::MatrixXd derivatives(12, 5), unused(12, 5);
  model(theta, up, derivatives);
  for (Eigen::Index k = 0; k < 5; ++k) {
    constexpr double step = 1e-6;
    Eigen::VectorXd shifted = theta;
    shifted[k] += step;
    model(shifted, up, unused);
    shifted[k] -= 2 * step;
    model(shifted, down, unused);
    EXPECT_LT(((up - down) / (2 * step) - derivatives.col(k)).cwiseAbs().maxCoeff(), 1e-8) << k;
  }
}

TEST(ScalingFit, TheSameTwice) {
  const auto points = ladder_points(chinchilla, 4, 3, 0.005, 3);
  const FitOptions options{.resamples = 20, .seed = 5};
  const ScalingFit once = fit_scaling(points, options), again = fit_scaling(points, options);
  for (size_t i = 0; i < once.replicates.size(); ++i)
    EXPECT_EQ(once.replicates[i].a_params, again.replicates[i].a_params) << i;
}

TEST(ScalingFit, Refusals) {
  const auto refused = [](std::vector<ScalingPoint> points, const std::string& text) {
    expect_refused([&] { fit_scaling(points, no_bootstrap); }, Exit::data, text);
  };
  auto points = ladder_points(chinchilla, 4, 3, 0.0, 1);
  refused({points.begin(), points.begin() + 7}, "got 7, expected at least 8");
  auto changed = points;
  for (ScalingPoint& point : changed) point.n_params = 1e8 * (1 + 1e-4 * point.n_params / 2e9);
  refused(changed, "1 different n_params");
  changed = points;
  for (ScalingPoint& point : changed) point.n_tokens = point.n_tokens < 1e10 ? 1e9 : 1e10;
  refused(changed, "2 different n_tokens");
  for (const double loss : {0.0, -1.0, nan, inf}) {
    changed = points;
    changed[3].loss = loss;
    refused(changed, "point 4 has loss");
  }
}

TEST(KaplanFit, RecoversCoefficientsWithoutNoise) {
  const KaplanLaw law{.n_critical = 6.4e13, .d_critical = 1.8e13, .exp_params = 0.076, .exp_tokens = 0.103};
  std::vector<ScalingPoint> points = strewn_points(chinchilla, 40, 0.0, 2);
  for (ScalingPoint& point : points) point.loss = law.loss(point.n_params, point.n_tokens);
  const KaplanFit fit = fit_kaplan(points, no_bootstrap);
  EXPECT_NEAR(fit.law.exp_params, 0.076, 1e-3);
  EXPECT_NEAR(fit.law.exp_tokens, 0.103, 1e-3);
  EXPECT_NEAR(std::log10(fit.law.n_critical), std::log10(6.4e13), 0.1);
  EXPECT_NEAR(std::log10(fit.law.d_critical), std::log10(1.8e13), 0.1);
  // Points with a floor are better described by the law that has one.
  const auto with_floor = strewn_points(chinchilla, 40, 0.001, 2);
  EXPECT_LT(fit_scaling(with_floor, no_bootstrap).goodness.rms,
            0.5 * fit_kaplan(with_floor, no_bootstrap).goodness.rms);
}

}  // namespace
}  // namespace normlab
