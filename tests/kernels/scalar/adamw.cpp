// Scalar twin of adamw.cpp, in double.
#include <cmath>

#include "kernels/scalar/twins.h"

namespace normlab::scalar {

void adamw(const AdamWSpec& spec, const AdamWBuffers& buffers, RowRange range) noexcept {
  const double step = static_cast<double>(spec.step);
  const double step_size = spec.lr / (1.0 - std::pow(spec.beta1, step));
  const double root = std::sqrt(1.0 - std::pow(spec.beta2, step));
  for (size_t i = range.begin; i < range.end; ++i) {
    const double g = buffers.grad[i] * spec.clip;
    const double m = buffers.m[i] + (1.0 - spec.beta1) * (g - buffers.m[i]);
    const double v = spec.beta2 * buffers.v[i] + (1.0 - spec.beta2) * g * g;
    const double decayed = buffers.param[i] * (1.0 - spec.lr * spec.weight_decay);
    buffers.m[i] = static_cast<float>(m);
    buffers.v[i] = static_cast<float>(v);
    buffers.param[i] = static_cast<float>(decayed - step_size * m / (std::sqrt(v) / root + spec.eps));
  }
}

double squared_norm(const float* x, RowRange range) noexcept {
  double sum = 0.0;
  for (size_t i = range.begin; i < range.end; ++i) sum += static_cast<double>(x[i]) * x[i];
  return sum;
}

void add_to(float* x, const float* y, RowRange range) noexcept {
  for (size_t i = range.begin; i < range.end; ++i) x[i] += y[i];
}

}  // namespace normlab::scalar
