// The fit of Hoffmann et al.'s law.
#include "normlab/stats/scaling_fit.h"

#include <cmath>
#include <set>

#include "normlab/base/error.h"
#include "normlab/base/text.h"
#include "normlab/stats/scaling_model.h"

namespace normlab {
namespace {

constexpr Eigen::Index law_coefficients = 5;

// Their grid: log E, log A, log B, a, b.
std::vector<ScalingLaw> grid_of_starts() {
  std::vector<ScalingLaw> starts;
  for (const double log_a : {0.0, 5.0, 10.0, 15.0, 20.0, 25.0})
    for (const double log_b : {0.0, 5.0, 10.0, 15.0, 20.0, 25.0})
      for (const double log_e : {-1.0, -0.5, 0.0, 0.5, 1.0})
        for (const double a : {0.0, 0.5, 1.0, 1.5, 2.0})
          for (const double b : {0.0, 0.5, 1.0, 1.5, 2.0})
            starts.push_back({std::exp(log_e), std::exp(log_a), std::exp(log_b), a, b});
  return starts;
}

// Sizes within one percent of each other are one: schemes differ by a few gains.
size_t count_distinct(std::span<const ScalingPoint> points, double ScalingPoint::*member) {
  std::set<double> values;
  for (const ScalingPoint& point : points) values.insert(point.*member);
  size_t count = 0;
  double last = 0;
  for (const double value : values)
    if (value > last * 1.01) ++count, last = value;
  return count;
}

}  // namespace

double ScalingLaw::loss(double n_params, double n_tokens) const {
  return floor + a_params * std::pow(n_params, -exp_params) + b_tokens * std::pow(n_tokens, -exp_tokens);
}

void require_points(const std::string& where, std::span<const ScalingPoint> points) {
  for (size_t i = 0; i < points.size(); ++i) {
    const auto require = [&](double value, const char* what) {
      if (!(value > 0) || !std::isfinite(value))
        throw DataError(where, concat("point ", i + 1, " has ", what, " = ", value, ", expected a number above 0."));
    };
    require(points[i].n_params, "n_params");
    require(points[i].n_tokens, "n_tokens");
    require(points[i].loss, "loss");
  }
  if (points.size() < least_points)
    throw DataError(where, concat("too few points for a law with five coefficients; got ", points.size(),
                                  ", expected at least ", least_points, ". Add sizes or horizons."));
  const auto require_distinct = [&](double ScalingPoint::*member, const char* what) {
    const size_t count = count_distinct(points, member);
    if (count < least_sizes)
      throw DataError(where, concat("the points have ", count, " different ", what, ", expected at least ", least_sizes,
                                    ": a floor, a factor and an exponent cannot be told from fewer."));
  };
  require_distinct(&ScalingPoint::n_params, "n_params");
  require_distinct(&ScalingPoint::n_tokens, "n_tokens");
}

CentredPoints centred(std::span<const ScalingPoint> points) {
  const auto n = static_cast<Eigen::Index>(points.size());
  CentredPoints out{.log_n = Eigen::VectorXd(n), .log_d = Eigen::VectorXd(n), .log_loss = Eigen::VectorXd(n)};
  for (Eigen::Index i = 0; i < n; ++i) {
    const ScalingPoint& point = points[static_cast<size_t>(i)];
    out.log_n[i] = std::log(point.n_params);
    out.log_d[i] = std::log(point.n_tokens);
    out.log_loss[i] = std::log(point.loss);
  }
  out.mean_log_n = out.log_n.mean();
  out.mean_log_d = out.log_d.mean();
  out.log_n.array() -= out.mean_log_n;
  out.log_d.array() -= out.mean_log_d;
  return out;
}

Eigen::MatrixXd places_of(const CentredPoints& points) {
  Eigen::MatrixXd places(points.log_n.size(), 2);
  places << points.log_n, points.log_d;
  return places;
}

CurveModel scaling_model(const CentredPoints& points) {
  return [&points](const Eigen::VectorXd& theta, Eigen::VectorXd& predicted, Eigen::MatrixXd& derivatives) {
    Eigen::MatrixXd terms(points.log_n.size(), 3), shares;
    terms.col(0).setConstant(theta[0]);
    terms.col(1) = theta[1] - theta[3] * points.log_n.array();
    terms.col(2) = theta[2] - theta[4] * points.log_d.array();
    predicted = log_sum_exp(terms, shares);
    derivatives.leftCols(3) = shares;
    derivatives.col(3) = -shares.col(1).cwiseProduct(points.log_n);
    derivatives.col(4) = -shares.col(2).cwiseProduct(points.log_d);
  };
}

ScalingLaw scaling_law(const Eigen::VectorXd& theta, const CentredPoints& points) {
  return {.floor = std::exp(theta[0]),
          .a_params = std::exp(theta[1] + theta[3] * points.mean_log_n),
          .b_tokens = std::exp(theta[2] + theta[4] * points.mean_log_d),
          .exp_params = theta[3],
          .exp_tokens = theta[4]};
}

Eigen::VectorXd scaling_theta(const ScalingLaw& law, const CentredPoints& points) {
  Eigen::VectorXd theta(law_coefficients);
  theta << std::log(law.floor), std::log(law.a_params) - law.exp_params * points.mean_log_n,
      std::log(law.b_tokens) - law.exp_tokens * points.mean_log_d, law.exp_params, law.exp_tokens;
  return theta;
}

Goodness goodness_of(const Eigen::VectorXd& residuals, const Eigen::VectorXd& log_loss, double n_fitted) {
  const double around_mean = (log_loss.array() - log_loss.mean()).square().sum(), left = residuals.squaredNorm();
  return {.r_squared = 1 - left / around_mean,
          .rms = std::sqrt(left / (static_cast<double>(residuals.size()) - n_fitted)),
          .largest = residuals.cwiseAbs().maxCoeff()};
}

std::vector<double> as_list(const Eigen::VectorXd& vector) { return {vector.begin(), vector.end()}; }

ScalingFit fit_scaling(std::span<const ScalingPoint> points, const FitOptions& options) {
  require_points("fit", points);
  const CentredPoints data = centred(points);
  const CurveModel model = scaling_model(data);
  std::vector<Eigen::VectorXd> starts;
  for (const ScalingLaw& start : grid_of_starts()) starts.push_back(scaling_theta(start, data));
  const CurveFit best = fit_curve(model, data.log_loss, starts, options);
  ScalingFit fit{.law = scaling_law(best.theta, data),
                 .goodness = goodness_of(best.residuals, data.log_loss, law_coefficients),
                 .residuals = as_list(best.residuals),
                 .df = static_cast<double>(points.size() - law_coefficients),
                 .resampling = choose_bootstrap(options.bootstrap, best.residuals, places_of(data))};
  if (options.resamples > 0)
    for (const Eigen::VectorXd& theta : bootstrap_curve(model, best, data.log_loss, fit.resampling.kind, options))
      fit.replicates.push_back(scaling_law(theta, data));
  return fit;
}

}  // namespace normlab
