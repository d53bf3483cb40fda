// Scalar twin of activation.cpp, in double.
#include <algorithm>
#include <cmath>

#include "kernels/scalar/twins.h"

namespace normlab::scalar {
namespace {

double normal_cdf(double z) { return 0.5 * std::erfc(-z * std::sqrt(0.5)); }
double normal_pdf(double z) { return std::exp(-0.5 * z * z) * 0.3989422804014327; }
double sigmoid(double z) { return 1.0 / (1.0 + std::exp(-z)); }

double tanh_gate(double z) { return sigmoid(2.0 * 0.7978845608028654 * (z + 0.044715 * z * z * z)); }

double value_of(Activation kind, double z) {
  if (kind == Activation::gelu) return z * normal_cdf(z);
  if (kind == Activation::relu) return std::max(z, 0.0);
  return z * (kind == Activation::swiglu ? sigmoid(z) : tanh_gate(z));
}

double slope_of(Activation kind, double z) {
  if (kind == Activation::gelu) return normal_cdf(z) + z * normal_pdf(z);
  if (kind == Activation::relu) return z > 0.0 ? 1.0 : 0.0;
  if (kind == Activation::swiglu) return sigmoid(z) * (1.0 + z * (1.0 - sigmoid(z)));
  const double s = tanh_gate(z);
  return s + 2.0 * z * s * (1.0 - s) * 0.7978845608028654 * (1.0 + 3.0 * 0.044715 * z * z);
}

double pre_activation(const ActivationSpec& spec, const float* x, size_t c) {
  return x[c] * (spec.scale ? static_cast<double>(spec.scale[c]) : 1.0) + (spec.bias ? spec.bias[c] : 0.0);
}

// Writes column c of dx and adds to the sums over rows.
struct GradientRow {
  const ActivationSpec& spec;
  const ActivationBackward& args;
  size_t at, block;

  void put(size_t c, double dz) const {
    if (args.d_bias) args.d_bias[block + c] += static_cast<float>(dz);
    if (args.d_scale) args.d_scale[block + c] += static_cast<float>(dz * args.x[at + c]);
    args.dx[at + c] = static_cast<float>(dz * (spec.scale ? static_cast<double>(spec.scale[c]) : 1.0));
  }
};

}  // namespace

void activation_forward(const ActivationSpec& spec, const float* x, float* y, RowRange rows) noexcept {
  const size_t half = spec.cols / 2;
  for (size_t row = rows.begin; row < rows.end; ++row) {
    const float* from = x + row * spec.cols;
    if (is_gated(spec.kind)) {
      for (size_t c = 0; c < half; ++c) {
        const double up = pre_activation(spec, from, c), gate = pre_activation(spec, from, half + c);
        y[row * half + c] = static_cast<float>(up * value_of(spec.kind, gate));
      }
      continue;
    }
    for (size_t c = 0; c < spec.cols; ++c) {
      const double z = pre_activation(spec, from, c);
      y[row * spec.cols + c] = static_cast<float>(value_of(spec.kind, z));
    }
  }
}

void activation_backward(const ActivationSpec& spec, const ActivationBackward& args, RowRange rows) noexcept {
  const size_t half = spec.cols / 2;
  for (size_t row = rows.begin; row < rows.end; ++row) {
    const GradientRow out{spec, args, row * spec.cols, row / kRowsPerBlock * spec.cols};
    if (row % kRowsPerBlock == 0)
      for (float* sums : {args.d_bias, args.d_scale})
        if (sums) std::fill(sums + out.block, sums + out.block + spec.cols, 0.0F);
    const float* x = args.x + out.at;
    if (is_gated(spec.kind)) {
      for (size_t c = 0; c < half; ++c) {
        const double up = pre_activation(spec, x, c), gate = pre_activation(spec, x, half + c);
        const double dy = args.dy[row * half + c];
        out.put(c, dy * value_of(spec.kind, gate));
        out.put(half + c, dy * up * slope_of(spec.kind, gate));
      }
      continue;
    }
    for (size_t c = 0; c < spec.cols; ++c) {
      const double z = pre_activation(spec, x, c), dy = args.dy[out.at + c];
      out.put(c, dy * slope_of(spec.kind, z));
    }
  }
}

}  // namespace normlab::scalar
