// Bootstraps of fitted curves, and the test that chooses between them.
//
//   residual  places of the points are kept, as they were chosen and not drawn; residuals are drawn from all points and
//             widened by sqrt(n / (n - p)) for the p parameters that were fitted
//   wild      each point keeps its own residual, with a random sign: variances may differ (Wu 1986; for absolute values
//             Feng, He and Hu 2011). The residual is that of the fit without the point, as its own fit goes through
//             about p of the points
//   case      points are drawn, with all that belongs to them
#pragma once

#include <optional>

#include "normlab/stats/huber_fit.h"

namespace normlab {

// Does the size of residuals depend on the columns of `places`, such as log N and log D? As Koenker's form of the test
// of Breusch and Pagan, n R^2 of a regression, chi-square with one degree of freedom per column; but of absolute
// residuals (Glejser 1969), as a fit by Huber's loss leaves some that are far out.
struct VarianceTest {
  double statistic = 0, df = 0, p_value = 1;
};
VarianceTest test_equal_variance(const Eigen::VectorXd& residuals, const Eigen::MatrixXd& places);

// p values up to this turn `automatic` from residual to case. It is large, because intervals of cases cover equal
// variances too, only wider, and those of residuals do not cover unequal ones.
inline constexpr double unequal_variance = 0.2;

struct Resampling {
  Bootstrap kind = Bootstrap::residual;  // never automatic
  bool chosen = false;                   // by the test; otherwise it was asked for
  VarianceTest variance = {};
};
Resampling choose_bootstrap(Bootstrap asked, const Eigen::VectorXd& residuals, const Eigen::MatrixXd& places);

// Of each point, the residual of the fit to the others; `theta` is that of the fit to all.
Eigen::VectorXd left_out_residuals(const CurveModel& model, const Eigen::VectorXd& theta,
                                   const Eigen::VectorXd& log_values, double delta);

// The noise of one resample, for the kinds that keep the places of the points.
Eigen::VectorXd resampled_noise(Bootstrap kind, const Eigen::VectorXd& residuals, double n_fitted, uint64_t key);

// The parameters of each resample, refitted from the fit and its other optima.
std::vector<Eigen::VectorXd> bootstrap_curve(const CurveModel& model, const CurveFit& fit,
                                             const Eigen::VectorXd& log_values, Bootstrap kind,
                                             const FitOptions& options);

// Percentile interval of bootstrap replicates, expanded for `df` degrees of freedom (Hesterberg, The American
// Statistician 69, 2015): its tails hold what a normal variable has beyond Student's quantile. Replicates that are not
// finite count as infinitely large.
Interval expanded_percentile(std::vector<double> replicates, double df, double level = 0.95);

}  // namespace normlab
