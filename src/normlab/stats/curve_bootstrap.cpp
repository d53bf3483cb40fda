// Bootstraps of fitted curves: three ways to draw a resample, one way to refit it.
#include "normlab/stats/curve_bootstrap.h"

#include <algorithm>
#include <boost/math/distributions/chi_squared.hpp>
#include <boost/math/distributions/normal.hpp>
#include <boost/math/distributions/students_t.hpp>
#include <cmath>
#include <limits>

#include "normlab/base/error.h"
#include "normlab/base/parallel.h"
#include "normlab/base/random.h"
#include "normlab/base/text.h"

namespace normlab {
namespace {

// How often each point is drawn. A draw that leaves the parameters undetermined, such as one of two sizes, is no
// sample of this kind and is drawn again.
Eigen::VectorXd drawn_counts(const Eigen::MatrixXd& derivatives, uint64_t key) {
  constexpr int attempts = 1000;
  const auto n = static_cast<size_t>(derivatives.rows());
  for (int attempt = 0; attempt < attempts; ++attempt) {
    Eigen::VectorXd counts = Eigen::VectorXd::Zero(derivatives.rows());
    for (size_t i = 0; i < n; ++i) ++counts[static_cast<Eigen::Index>(draw_below(stream_key(key, attempt), i, n))];
    const Eigen::MatrixXd drawn = counts.cwiseMin(1.0).asDiagonal() * derivatives;
    if ((counts.array() > 0).count() > derivatives.cols() && drawn.colPivHouseholderQr().rank() == derivatives.cols())
      return counts;
  }
  throw DataError("bootstrap", concat("of ", n, " points no draw determines ", derivatives.cols(), " parameters; got ",
                                      attempts, " attempts. Use the wild bootstrap."));
}

Eigen::VectorXd predictions(const CurveModel& model, const Eigen::VectorXd& theta, Eigen::Index n) {
  Eigen::VectorXd predicted;
  Eigen::MatrixXd derivatives(n, theta.size());
  model(theta, predicted, derivatives);
  return predicted;
}

}  // namespace

Eigen::VectorXd left_out_residuals(const CurveModel& model, const Eigen::VectorXd& theta,
                                   const Eigen::VectorXd& log_values, double delta) {
  Eigen::VectorXd residuals(log_values.size());
  for_each_index(static_cast<size_t>(residuals.size()), [&](size_t i) {
    const auto point = static_cast<Eigen::Index>(i);
    Eigen::VectorXd weights = Eigen::VectorXd::Ones(log_values.size());
    weights[point] = 0;
    const CurveFit without = descend(model, log_values, theta, delta, weights);
    residuals[point] = log_values[point] - predictions(model, without.theta, log_values.size())[point];
  });
  return residuals;
}

VarianceTest test_equal_variance(const Eigen::VectorXd& residuals, const Eigen::MatrixXd& places) {
  const Eigen::VectorXd sizes = residuals.cwiseAbs();
  Eigen::MatrixXd design(places.rows(), places.cols() + 1);
  design << Eigen::VectorXd::Ones(places.rows()), places;
  const Eigen::VectorXd fitted = design * design.colPivHouseholderQr().solve(sizes);
  const double around_mean = (sizes.array() - sizes.mean()).square().sum();
  VarianceTest test{.df = static_cast<double>(places.cols())};
  if (around_mean <= 0) return test;  // all residuals of one size
  test.statistic =
      static_cast<double>(residuals.size()) * std::clamp(1 - (sizes - fitted).squaredNorm() / around_mean, 0.0, 1.0);
  test.p_value = cdf(complement(boost::math::chi_squared(test.df), test.statistic));
  return test;
}

Resampling choose_bootstrap(Bootstrap asked, const Eigen::VectorXd& residuals, const Eigen::MatrixXd& places) {
  Resampling choice{
      .kind = asked, .chosen = asked == Bootstrap::automatic, .variance = test_equal_variance(residuals, places)};
  if (choice.chosen) choice.kind = choice.variance.p_value <= unequal_variance ? Bootstrap::cases : Bootstrap::residual;
  return choice;
}

Eigen::VectorXd resampled_noise(Bootstrap kind, const Eigen::VectorXd& residuals, double n_fitted, uint64_t key) {
  const auto n = static_cast<size_t>(residuals.size());
  const double centre = residuals.mean(),
               widen = std::sqrt(static_cast<double>(n) / (static_cast<double>(n) - n_fitted));
  Eigen::VectorXd noise = residuals;
  for (size_t i = 0; i < n; ++i) {
    double& own = noise[static_cast<Eigen::Index>(i)];
    if (kind == Bootstrap::wild)
      own = draw_below(key, i, 2) == 0 ? own : -own;
    else
      own = widen * (residuals[static_cast<Eigen::Index>(draw_below(key, i, n))] - centre);
  }
  return noise;
}

std::vector<Eigen::VectorXd> bootstrap_curve(const CurveModel& model, const CurveFit& fit,
                                             const Eigen::VectorXd& log_values, Bootstrap kind,
                                             const FitOptions& options) {
  const Eigen::VectorXd fitted = log_values - fit.residuals, once = Eigen::VectorXd::Ones(log_values.size());
  const auto n_fitted = static_cast<double>(fit.theta.size());
  const Eigen::VectorXd residuals =
      kind == Bootstrap::wild ? left_out_residuals(model, fit.theta, log_values, options.delta) : fit.residuals;
  Eigen::VectorXd unused;
  Eigen::MatrixXd derivatives(log_values.size(), fit.theta.size());
  model(fit.theta, unused, derivatives);
  std::vector<Eigen::VectorXd> thetas(static_cast<size_t>(options.resamples));
  for_each_index(thetas.size(), [&](size_t i) {
    const uint64_t key = stream_key(options.seed, i);
    const bool cases = kind == Bootstrap::cases;
    const Eigen::VectorXd weights = cases ? drawn_counts(derivatives, key) : once;
    const Eigen::VectorXd drawn =
        cases ? log_values : Eigen::VectorXd(fitted + resampled_noise(kind, residuals, n_fitted, key));
    CurveFit best = descend(model, drawn, fit.theta, options.delta, weights);
    for (const Eigen::VectorXd& start : fit.other_optima)
      if (CurveFit other = descend(model, drawn, start, options.delta, weights); other.objective < best.objective)
        best = std::move(other);
    thetas[i] = best.theta;
  });
  return thetas;
}

Interval expanded_percentile(std::vector<double> replicates, double df, double level) {
  for (double& value : replicates)
    if (!std::isfinite(value)) value = std::numeric_limits<double>::infinity();
  std::sort(replicates.begin(), replicates.end());
  const double t = quantile(boost::math::students_t(df), (1 - level) / 2);
  const double tail = cdf(boost::math::normal(), t);
  // Of infinite neighbours no value between can be had.
  const auto at = [&](double share, bool up) {
    const double place = share * static_cast<double>(replicates.size() - 1);
    const auto below = static_cast<size_t>(std::floor(place)), above = static_cast<size_t>(std::ceil(place));
    if (!std::isfinite(replicates[above])) return replicates[up ? above : below];
    return sorted_quantile(replicates, share);
  };
  return {at(tail, false), at(1 - tail, true), level};
}

}  // namespace normlab
