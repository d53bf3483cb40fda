// The curve models behind the scaling fits. log N and log D are centred, so that coefficients and exponents are
// almost independent and a descent takes tens of steps instead of thousands.
#pragma once

#include <span>

#include "normlab/stats/scaling_fit.h"

namespace normlab {

struct CentredPoints {
  Eigen::VectorXd log_n, log_d;  // less their means
  Eigen::VectorXd log_loss;
  double mean_log_n = 0, mean_log_d = 0;
};
CentredPoints centred(std::span<const ScalingPoint> points);
Eigen::MatrixXd places_of(const CentredPoints& points);  // log N and log D, for the test of equal variance

// theta = (log E, log A', log B', a, b): A' and B' are the terms at the means of log N and log D.
CurveModel scaling_model(const CentredPoints& points);
ScalingLaw scaling_law(const Eigen::VectorXd& theta, const CentredPoints& points);
Eigen::VectorXd scaling_theta(const ScalingLaw& law, const CentredPoints& points);

Goodness goodness_of(const Eigen::VectorXd& residuals, const Eigen::VectorXd& log_loss, double n_fitted);
std::vector<double> as_list(const Eigen::VectorXd& vector);

}  // namespace normlab
