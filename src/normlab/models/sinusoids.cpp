#include "normlab/models/sinusoids.h"

#include <numbers>

namespace normlab {

using torch::Tensor;

Tensor sinusoids(Positions kind, int64_t length, int64_t c, torch::TensorOptions options) {
  const auto real = options.dtype(torch::kFloat64).device(torch::kCPU);  // the same on all devices
  const Tensor column = torch::arange(c, real);
  const Tensor odd = column.remainder(2.0);
  const Tensor frequency = torch::pow(10000.0, (odd - column) / static_cast<double>(c));
  const Tensor angle = torch::arange(length, real).unsqueeze(1) * frequency;
  const double quarter = kind == Positions::sinusoidal ? std::numbers::pi / 2 : 0.0;  // sin(x + pi/2) = cos(x)
  return torch::sin(angle + odd * quarter).to(options.device(), c10::typeMetaToScalarType(options.dtype()));
}

}  // namespace normlab
