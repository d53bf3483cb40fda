// Robust fits of curves to logarithms of positive values, and their bootstrap.
//
//   minimise over theta  mean_i h((log y_i - f_i(theta)) / delta),   h(u) = u^2/2 for |u| <= 1, |u| - 1/2 beyond
//
// by L-BFGS with the model's own derivatives, from many starts. The bootstrap is that of residuals: the places of the
// points are kept, as they were chosen and not drawn, and residuals are resampled, widened by sqrt(n / (n - p)) for
// the p parameters that were fitted.
#pragma once

#include <cstdint>
#include <eigen3/Eigen/Dense>
#include <functional>
#include <vector>

#include "stats/summary.h"

namespace normlab {

// f(theta) of every point and its derivatives, points x parameters. Called from several threads.
using CurveModel =
    std::function<void(const Eigen::VectorXd& theta, Eigen::VectorXd& predicted, Eigen::MatrixXd& derivatives)>;

struct FitOptions {
  double delta = 1e-3;  // where the loss turns from squares to absolute values; Hoffmann et al.'s
  int resamples = 1000;
  uint64_t seed = 0;
};

struct CurveFit {
  Eigen::VectorXd theta;
  double objective = 0;                       // the mean above, at theta
  Eigen::VectorXd residuals;                  // log y - f
  std::vector<Eigen::VectorXd> other_optima;  // the next best ends of other starts, for the bootstrap to try
};

// The best end of all starts: a short descent from each, then long ones from the most promising.
CurveFit fit_curve(const CurveModel& model, const Eigen::VectorXd& log_values,
                   const std::vector<Eigen::VectorXd>& starts, const FitOptions& options);

// One descent.
CurveFit descend(const CurveModel& model, const Eigen::VectorXd& log_values, const Eigen::VectorXd& start,
                 double delta);

// Residuals drawn with replacement and widened for `n_fitted` parameters: the noise of resample `index`.
Eigen::VectorXd resampled_noise(const Eigen::VectorXd& residuals, double n_fitted, uint64_t key);

// The parameters of each resample, refitted from the fit and its other optima.
std::vector<Eigen::VectorXd> bootstrap_curve(const CurveModel& model, const CurveFit& fit,
                                             const Eigen::VectorXd& log_values, const FitOptions& options);

// Percentile interval of bootstrap replicates, expanded for `df` degrees of freedom (Hesterberg, The American
// Statistician 69, 2015): its tails hold what a normal variable has beyond Student's quantile. Replicates that are not
// finite count as infinitely large.
Interval expanded_percentile(std::vector<double> replicates, double df, double level = 0.95);

// log(sum_j exp(terms_ij)) of each row, and the shares exp(terms_ij - result_i).
Eigen::VectorXd log_sum_exp(const Eigen::MatrixXd& terms, Eigen::MatrixXd& shares);

}  // namespace normlab
