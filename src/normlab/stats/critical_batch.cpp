// The fit of the critical batch size: log S = log(exp(theta_0) + exp(theta_1 - log B)).
#include "normlab/stats/critical_batch.h"

#include <cmath>
#include <set>

#include "normlab/base/error.h"
#include "normlab/base/text.h"
#include "normlab/stats/scaling_model.h"

namespace normlab {
namespace {

constexpr Eigen::Index batch_coefficients = 2;

void require_batches(std::span<const BatchPoint> points) {
  std::set<double> sizes;
  for (const BatchPoint& point : points) {
    if (!(point.batch > 0) || !(point.steps > 0) || !std::isfinite(point.batch) || !std::isfinite(point.steps))
      throw DataError("critical batch",
                      concat("got ", point.steps, " steps of ", point.batch, " tokens, expected numbers above 0."));
    sizes.insert(point.batch);
  }
  if (sizes.size() < least_batches)
    throw DataError(
        "critical batch",
        concat("got ", sizes.size(), " batch sizes that reach the loss, expected at least ", least_batches, "."));
}

}  // namespace

LawFit<BatchLaw> fit_critical_batch(std::span<const BatchPoint> points, const FitOptions& options) {
  require_batches(points);
  const auto n = static_cast<Eigen::Index>(points.size());
  Eigen::VectorXd log_batch(n), log_steps(n);
  for (Eigen::Index i = 0; i < n; ++i) {
    log_batch[i] = std::log(points[static_cast<size_t>(i)].batch);
    log_steps[i] = std::log(points[static_cast<size_t>(i)].steps);
  }
  const CurveModel model = [&](const Eigen::VectorXd& theta, Eigen::VectorXd& predicted, Eigen::MatrixXd& derivatives) {
    Eigen::MatrixXd terms(n, 2);
    terms.col(0).setConstant(theta[0]);
    terms.col(1) = theta[1] - log_batch.array();
    predicted = log_sum_exp(terms, derivatives);
  };
  // From all steps needed whatever the batch, to all tokens needed.
  std::vector<Eigen::VectorXd> starts;
  for (const double share : {0.02, 0.2, 0.5, 0.8, 0.98})
    starts.push_back(
        Eigen::Vector2d(log_steps.mean() + std::log(share), log_steps.mean() + log_batch.mean() + std::log(1 - share)));
  const auto law_of = [](const Eigen::VectorXd& theta) { return BatchLaw{std::exp(theta[0]), std::exp(theta[1])}; };
  const CurveFit best = fit_curve(model, log_steps, starts, options);
  LawFit<BatchLaw> fit{.law = law_of(best.theta),
                       .goodness = goodness_of(best.residuals, log_steps, batch_coefficients),
                       .residuals = as_list(best.residuals),
                       .df = static_cast<double>(n - batch_coefficients)};
  if (options.resamples > 0)
    for (const Eigen::VectorXd& theta : bootstrap_curve(model, best, log_steps, Bootstrap::residual, options))
      fit.replicates.push_back(law_of(theta));
  return fit;
}

}  // namespace normlab
