// The fit of Kaplan et al.'s law, which has no floor:
//   log L = a_D log(exp(u - r log N) + exp(v - log D)),   r = a_N / a_D,   theta = (log r, log a_D, u, v)
#include <cmath>

#include "normlab/stats/scaling_model.h"

namespace normlab {
namespace {

constexpr Eigen::Index kaplan_coefficients = 4;

CurveModel kaplan_model(const CentredPoints& points) {
  return [&points](const Eigen::VectorXd& theta, Eigen::VectorXd& predicted, Eigen::MatrixXd& derivatives) {
    const double ratio = std::exp(theta[0]), exponent = std::exp(theta[1]);
    Eigen::MatrixXd terms(points.log_n.size(), 2), shares;
    terms.col(0) = theta[2] - ratio * points.log_n.array();
    terms.col(1) = theta[3] - points.log_d.array();
    predicted = exponent * log_sum_exp(terms, shares);
    derivatives.col(0) = -exponent * ratio * shares.col(0).cwiseProduct(points.log_n);
    derivatives.col(1) = predicted;
    derivatives.rightCols(2) = exponent * shares;
  };
}

KaplanLaw kaplan_law(const Eigen::VectorXd& theta, const CentredPoints& points) {
  const double ratio = std::exp(theta[0]), exponent = std::exp(theta[1]);
  return {.n_critical = std::exp(theta[2] / ratio + points.mean_log_n),
          .d_critical = std::exp(theta[3] + points.mean_log_d),
          .exp_params = ratio * exponent,
          .exp_tokens = exponent};
}

// Laws that go through the middle of the points, with the two terms in several proportions there.
std::vector<Eigen::VectorXd> kaplan_starts(double mean_log_loss) {
  std::vector<Eigen::VectorXd> starts;
  for (const double exponent : {0.03, 0.1, 0.3, 1.0})
    for (const double ratio : {0.25, 0.5, 1.0, 2.0, 4.0})
      for (const double share : {0.05, 0.25, 0.5, 0.75, 0.95}) {
        const double middle = mean_log_loss / exponent;
        Eigen::VectorXd theta(kaplan_coefficients);
        theta << std::log(ratio), std::log(exponent), middle + std::log(share), middle + std::log(1 - share);
        starts.push_back(theta);
      }
  return starts;
}

}  // namespace

double KaplanLaw::loss(double n_params, double n_tokens) const {
  return std::pow(std::pow(n_critical / n_params, exp_params / exp_tokens) + d_critical / n_tokens, exp_tokens);
}

KaplanFit fit_kaplan(std::span<const ScalingPoint> points, const FitOptions& options) {
  require_points("fit", points);
  const CentredPoints data = centred(points);
  const CurveModel model = kaplan_model(data);
  const CurveFit best = fit_curve(model, data.log_loss, kaplan_starts(data.log_loss.mean()), options);
  KaplanFit fit{.law = kaplan_law(best.theta, data),
                .goodness = goodness_of(best.residuals, data.log_loss, kaplan_coefficients),
                .residuals = as_list(best.residuals),
                .df = static_cast<double>(points.size() - kaplan_coefficients),
                .resampling = choose_bootstrap(options.bootstrap, best.residuals, places_of(data))};
  if (options.resamples > 0)
    for (const Eigen::VectorXd& theta : bootstrap_curve(model, best, data.log_loss, fit.resampling.kind, options))
      fit.replicates.push_back(kaplan_law(theta, data));
  return fit;
}

}  // namespace normlab
