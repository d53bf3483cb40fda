// Robust fits of curves by L-BFGS (LBFGS++), and their bootstrap.
#include "stats/huber_fit.h"

#include <LBFGS.h>

#include <algorithm>
#include <boost/math/distributions/normal.hpp>
#include <boost/math/distributions/students_t.hpp>
#include <cmath>
#include <limits>
#include <numeric>

#include "base/random.h"
#include "stats/parallel.h"

namespace normlab {
namespace {

constexpr int short_descent = 40, long_descent = 2000;
constexpr size_t n_promising = 12, n_other_optima = 3;

// Remembers the best place it was asked for: a line search that gives up leaves the solver's own anywhere.
class HuberObjective {
 public:
  HuberObjective(const CurveModel& model, const Eigen::VectorXd& log_values, double delta)
      : model_(model), log_values_(log_values), delta_(delta), derivatives_(log_values.size(), 0) {}

  double operator()(const Eigen::VectorXd& theta, Eigen::VectorXd& gradient) {
    derivatives_.resize(log_values_.size(), theta.size());
    model_(theta, predicted_, derivatives_);
    const auto scaled = ((predicted_ - log_values_) / delta_).array().eval();
    const auto size = scaled.abs().eval();
    const auto n = static_cast<double>(log_values_.size());
    const double value = (size <= 1.0).select(0.5 * size.square(), size - 0.5).sum() / n;
    gradient.noalias() = derivatives_.transpose() * (scaled.cwiseMax(-1.0).cwiseMin(1.0) / (n * delta_)).matrix();
    if (!std::isfinite(value) || !gradient.allFinite()) {
      gradient.setZero(theta.size());
      return std::numeric_limits<double>::max();
    }
    if (value < best) best = value, best_theta = theta;
    return value;
  }

  double best = std::numeric_limits<double>::infinity();
  Eigen::VectorXd best_theta;

 private:
  const CurveModel& model_;
  const Eigen::VectorXd& log_values_;
  double delta_;
  Eigen::VectorXd predicted_;
  Eigen::MatrixXd derivatives_;
};

CurveFit descend(const CurveModel& model, const Eigen::VectorXd& log_values, const Eigen::VectorXd& start, double delta,
                 int iterations) {
  LBFGSpp::LBFGSParam<double> settings;
  settings.m = 10;
  settings.max_iterations = iterations;
  settings.epsilon = settings.epsilon_rel = 1e-9;
  settings.past = 10;
  settings.delta = 1e-9;
  settings.max_linesearch = 40;
  LBFGSpp::LBFGSSolver<double, LBFGSpp::LineSearchBacktracking> solver(settings);
  HuberObjective objective(model, log_values, delta);
  Eigen::VectorXd theta = start;
  double value = 0;
  try {
    solver.minimize(objective, theta, value);
  } catch (const std::exception&) {
    // The line search found nothing lower: this is as far as this descent goes.
  }
  return {.theta = objective.best_theta.size() > 0 ? objective.best_theta : start,
          .objective = objective.best,
          .residuals = {},
          .other_optima = {}};
}

void add_residuals(CurveFit& fit, const CurveModel& model, const Eigen::VectorXd& log_values) {
  Eigen::VectorXd predicted;
  Eigen::MatrixXd derivatives(log_values.size(), fit.theta.size());
  model(fit.theta, predicted, derivatives);
  fit.residuals = log_values - predicted;
}

void sort_by_objective(std::vector<CurveFit>& fits) {
  std::stable_sort(fits.begin(), fits.end(),
                   [](const CurveFit& a, const CurveFit& b) { return a.objective < b.objective; });
}

}  // namespace

CurveFit descend(const CurveModel& model, const Eigen::VectorXd& log_values, const Eigen::VectorXd& start,
                 double delta) {
  return descend(model, log_values, start, delta, long_descent);
}

CurveFit fit_curve(const CurveModel& model, const Eigen::VectorXd& log_values,
                   const std::vector<Eigen::VectorXd>& starts, const FitOptions& options) {
  std::vector<CurveFit> ends(starts.size());
  for_each_index(starts.size(),
                 [&](size_t i) { ends[i] = descend(model, log_values, starts[i], options.delta, short_descent); });
  sort_by_objective(ends);
  ends.resize(std::min(ends.size(), n_promising));
  for_each_index(ends.size(),
                 [&](size_t i) { ends[i] = descend(model, log_values, ends[i].theta, options.delta, long_descent); });
  sort_by_objective(ends);
  CurveFit best = ends.front();
  for (size_t i = 1; i < ends.size() && best.other_optima.size() < n_other_optima; ++i)
    best.other_optima.push_back(ends[i].theta);
  add_residuals(best, model, log_values);
  return best;
}

Eigen::VectorXd resampled_noise(const Eigen::VectorXd& residuals, double n_fitted, uint64_t key) {
  const auto n = static_cast<size_t>(residuals.size());
  const double widen = std::sqrt(static_cast<double>(n) / (static_cast<double>(n) - n_fitted));
  const double centre = residuals.mean();
  Eigen::VectorXd noise(residuals.size());
  for (size_t i = 0; i < n; ++i)
    noise[static_cast<Eigen::Index>(i)] =
        widen * (residuals[static_cast<Eigen::Index>(draw_below(key, i, n))] - centre);
  return noise;
}

std::vector<Eigen::VectorXd> bootstrap_curve(const CurveModel& model, const CurveFit& fit,
                                             const Eigen::VectorXd& log_values, const FitOptions& options) {
  const Eigen::VectorXd fitted = log_values - fit.residuals;
  std::vector<Eigen::VectorXd> thetas(static_cast<size_t>(options.resamples));
  for_each_index(thetas.size(), [&](size_t i) {
    const auto noise =
        resampled_noise(fit.residuals, static_cast<double>(fit.theta.size()), stream_key(options.seed, i));
    const Eigen::VectorXd drawn = fitted + noise;
    CurveFit best = descend(model, drawn, fit.theta, options.delta, long_descent);
    for (const Eigen::VectorXd& start : fit.other_optima)
      if (CurveFit other = descend(model, drawn, start, options.delta, long_descent); other.objective < best.objective)
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

Eigen::VectorXd log_sum_exp(const Eigen::MatrixXd& terms, Eigen::MatrixXd& shares) {
  const Eigen::VectorXd largest = terms.rowwise().maxCoeff();
  shares = (terms.colwise() - largest).array().exp().matrix();
  const Eigen::VectorXd sums = shares.rowwise().sum();
  shares.array().colwise() /= sums.array();
  return largest + sums.array().log().matrix();
}

}  // namespace normlab
