// Robust fits of curves by L-BFGS (LBFGS++).
#include "normlab/stats/huber_fit.h"

#include <LBFGS.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "normlab/base/parallel.h"

namespace normlab {
namespace {

constexpr int short_descent = 40, long_descent = 2000;
constexpr size_t n_promising = 12, n_other_optima = 3;

// Remembers the best place it was asked for: a line search that gives up leaves the solver's own anywhere.
class HuberObjective {
 public:
  HuberObjective(const CurveModel& model, const Eigen::VectorXd& log_values, double delta,
                 const Eigen::VectorXd& weights)
      : model_(model), log_values_(log_values), delta_(delta), weights_(weights), derivatives_(log_values.size(), 0) {}

  double operator()(const Eigen::VectorXd& theta, Eigen::VectorXd& gradient) {
    derivatives_.resize(log_values_.size(), theta.size());
    model_(theta, predicted_, derivatives_);
    const auto scaled = ((predicted_ - log_values_) / delta_).array().eval();
    const auto size = scaled.abs().eval();
    const double n = weights_.sum();
    const double value = ((size <= 1.0).select(0.5 * size.square(), size - 0.5) * weights_.array()).sum() / n;
    gradient.noalias() =
        derivatives_.transpose() * (scaled.cwiseMax(-1.0).cwiseMin(1.0) * weights_.array() / (n * delta_)).matrix();
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
  const Eigen::VectorXd& weights_;
  Eigen::VectorXd predicted_;
  Eigen::MatrixXd derivatives_;
};

CurveFit descend(const CurveModel& model, const Eigen::VectorXd& log_values, const Eigen::VectorXd& start, double delta,
                 const Eigen::VectorXd& weights, int iterations) {
  LBFGSpp::LBFGSParam<double> settings;
  settings.m = 10;
  settings.max_iterations = iterations;
  settings.epsilon = settings.epsilon_rel = 1e-9;
  settings.past = 10;
  settings.delta = 1e-9;
  settings.max_linesearch = 40;
  LBFGSpp::LBFGSSolver<double, LBFGSpp::LineSearchBacktracking> solver(settings);
  HuberObjective objective(model, log_values, delta, weights);
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
  return descend(model, log_values, start, delta, Eigen::VectorXd::Ones(log_values.size()), long_descent);
}

CurveFit descend(const CurveModel& model, const Eigen::VectorXd& log_values, const Eigen::VectorXd& start, double delta,
                 const Eigen::VectorXd& weights) {
  return descend(model, log_values, start, delta, weights, long_descent);
}

CurveFit fit_curve(const CurveModel& model, const Eigen::VectorXd& log_values,
                   const std::vector<Eigen::VectorXd>& starts, const FitOptions& options) {
  const Eigen::VectorXd weights = Eigen::VectorXd::Ones(log_values.size());
  std::vector<CurveFit> ends(starts.size());
  for_each_index(starts.size(), [&](size_t i) {
    ends[i] = descend(model, log_values, starts[i], options.delta, weights, short_descent);
  });
  sort_by_objective(ends);
  ends.resize(std::min(ends.size(), n_promising));
  for_each_index(ends.size(), [&](size_t i) {
    ends[i] = descend(model, log_values, ends[i].theta, options.delta, weights, long_descent);
  });
  sort_by_objective(ends);
  CurveFit best = ends.front();
  for (size_t i = 1; i < ends.size() && best.other_optima.size() < n_other_optima; ++i)
    best.other_optima.push_back(ends[i].theta);
  add_residuals(best, model, log_values);
  return best;
}

Eigen::VectorXd log_sum_exp(const Eigen::MatrixXd& terms, Eigen::MatrixXd& shares) {
  const Eigen::VectorXd largest = terms.rowwise().maxCoeff();
  shares = (terms.colwise() - largest).array().exp().matrix();
  const Eigen::VectorXd sums = shares.rowwise().sum();
  shares.array().colwise() /= sums.array();
  return largest + sums.array().log().matrix();
}

}  // namespace normlab
