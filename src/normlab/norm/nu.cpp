#include "normlab/norm/nu.h"

#include <boost/math/quadrature/gauss_kronrod.hpp>
#include <cmath>
#include <numbers>

namespace normlab {

double nu_of_map(double in, double out) { return std::sqrt(in / out); }

double nu_of_activation(const std::function<double(double)>& f, double std, double n) {
  const auto weighted = [&](double g) {
    const double y = f(std * g);
    return y * y * std::exp(-0.5 * g * g) / std::sqrt(2.0 * std::numbers::pi);
  };
  // Both sides of zero apart, where relu has its kink; beyond 12 deviations there is less than 1e-30.
  using Quadrature = boost::math::quadrature::gauss_kronrod<double, 61>;
  const double mean_square = Quadrature::integrate(weighted, -12.0, 0.0) + Quadrature::integrate(weighted, 0.0, 12.0);
  return 1.0 / std::sqrt(n * mean_square);
}

}  // namespace normlab
