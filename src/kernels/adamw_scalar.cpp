// Scalar twin of adamw.cpp, in double.
#include <cmath>

#include "kernels/adamw.h"

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

void squared_norm_blocks(const float* x, RowRange range, double* partial) noexcept {
  for (size_t i = range.begin; i < range.end; ++i) {
    double& sum = partial[i / kNormBlock];
    if (i % kNormBlock == 0) sum = 0.0;
    sum += static_cast<double>(x[i]) * x[i];
  }
}

}  // namespace normlab::scalar
