#include "normlab/nn/mlp_factors.h"

#include <cmath>
#include <numbers>

#include "normlab/norm/nu.h"

namespace normlab {
namespace {

double value_of(Activation kind, double x) {
  switch (kind) {
    case Activation::gelu:
      return 0.5 * x * std::erfc(-x / std::numbers::sqrt2);
    case Activation::gelu_tanh:
    case Activation::geglu:
      return x / (1.0 + std::exp(-2.0 * std::sqrt(2.0 / std::numbers::pi) * (x + 0.044715 * x * x * x)));
    case Activation::relu:
      return std::max(x, 0.0);
    case Activation::swiglu:
      break;
  }
  return x / (1.0 + std::exp(-x));
}

}  // namespace

MlpFactors mlp_factors(const ModelConfig& c) {
  MlpFactors nu{.in = nu_of_map(c.d_model, c.d_ff),
                .argument = std::sqrt(double(c.d_model)),
                .out = nu_of_map(c.d_ff, c.d_model)};
  // Entries of a unit vector of R^d_model have the deviation 1/sqrt(d_model), those of nu_in W_in h nu_in times that.
  const double n = is_gated(c.activation) ? 1.0 : c.d_ff;
  nu.activation = nu_of_activation([&](double x) { return value_of(c.activation, x); }, nu.in, n);
  return nu;
}

}  // namespace normlab
