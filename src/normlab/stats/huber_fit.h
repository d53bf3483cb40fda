// Robust fits of curves to logarithms of positive values.
//
//   minimise over theta  mean_i h((log y_i - f_i(theta)) / delta),   h(u) = u^2/2 for |u| <= 1, |u| - 1/2 beyond
//
// by L-BFGS with the model's own derivatives, from many starts. Intervals: curve_bootstrap.h.
#pragma once

#include <cstdint>
#include <eigen3/Eigen/Dense>
#include <functional>
#include <string_view>
#include <vector>

#include "normlab/stats/summary.h"

namespace normlab {

// f(theta) of every point and its derivatives, points x parameters. Called from several threads.
using CurveModel =
    std::function<void(const Eigen::VectorXd& theta, Eigen::VectorXd& predicted, Eigen::MatrixXd& derivatives)>;

enum class Bootstrap { automatic, residual, wild, cases };
inline constexpr std::string_view bootstrap_names[] = {"auto", "residual", "wild", "case"};  // as the enumerators

struct FitOptions {
  double delta = 1e-3;  // where the loss turns from squares to absolute values; Hoffmann et al.'s
  int resamples = 1000;
  uint64_t seed = 0;
  Bootstrap bootstrap = Bootstrap::automatic;
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

// One descent; with weights, of their mean.
CurveFit descend(const CurveModel& model, const Eigen::VectorXd& log_values, const Eigen::VectorXd& start,
                 double delta);
CurveFit descend(const CurveModel& model, const Eigen::VectorXd& log_values, const Eigen::VectorXd& start, double delta,
                 const Eigen::VectorXd& weights);

// log(sum_j exp(terms_ij)) of each row, and the shares exp(terms_ij - result_i).
Eigen::VectorXd log_sum_exp(const Eigen::MatrixXd& terms, Eigen::MatrixXd& shares);

}  // namespace normlab
