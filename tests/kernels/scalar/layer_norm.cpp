// Scalar twin of layer_norm.cpp, in double.
#include <algorithm>
#include <cmath>

#include "kernels/scalar/twins.h"

namespace normlab::scalar {
namespace {

// What dropout multiplies element (row, c) of the branch by.
double keep_factor(const NormSpec& spec, size_t row, size_t c) {
  if (spec.dropout == 0.0F) return 1.0;
  const uint32_t bits = keep_bits(row_key(spec.dropout_key, static_cast<uint32_t>(row)), static_cast<uint32_t>(c));
  return bits >= drop_threshold(spec.dropout) ? 1.0 / (1.0 - static_cast<double>(spec.dropout)) : 0.0;
}

double weight_at(const NormSpec& spec, size_t c) { return spec.weight ? spec.weight[c] : 1.0; }

}  // namespace

void norm_forward(const NormSpec& spec, const NormForward& args, RowRange rows) noexcept {
  const double n = static_cast<double>(spec.cols);
  for (size_t row = rows.begin; row < rows.end; ++row) {
    const size_t at = row * spec.cols;
    if (args.branch)
      for (size_t c = 0; c < spec.cols; ++c)
        args.sum[at + c] = static_cast<float>(args.x[at + c] + args.branch[at + c] * keep_factor(spec, row, c));
    if (!args.y) continue;
    const float* s = (args.branch ? args.sum : args.x) + at;
    double mean = 0.0, squares = 0.0;
    if (!spec.rms)
      for (size_t c = 0; c < spec.cols; ++c) mean += s[c] / n;
    for (size_t c = 0; c < spec.cols; ++c) squares += (s[c] - mean) * (s[c] - mean);
    const double rstd = 1.0 / std::sqrt(squares / n + static_cast<double>(spec.eps));
    for (size_t c = 0; c < spec.cols; ++c)
      args.y[at + c] = static_cast<float>((s[c] - mean) * rstd * weight_at(spec, c) + (spec.bias ? spec.bias[c] : 0.0));
    if (!spec.rms) args.mean[row] = static_cast<float>(mean);
    args.rstd[row] = static_cast<float>(rstd);
  }
}

void norm_backward(const NormSpec& spec, const NormBackward& args, RowRange rows) noexcept {
  const double n = static_cast<double>(spec.cols);
  for (size_t row = rows.begin; row < rows.end; ++row) {
    const size_t at = row * spec.cols, block = row / kRowsPerBlock * spec.cols;
    const double mean = spec.rms ? 0.0 : args.mean[row], rstd = args.rstd[row];
    if (row % kRowsPerBlock == 0)
      for (float* sums : {args.d_weight, args.d_bias})
        if (sums) std::fill(sums + block, sums + block + spec.cols, 0.0F);
    double g_mean = 0.0, g_dot = 0.0;
    for (size_t c = 0; c < spec.cols; ++c) {
      const double g = args.dy[at + c] * weight_at(spec, c);
      g_mean += g / n;
      g_dot += g * (args.s[at + c] - mean) * rstd / n;
    }
    for (size_t c = 0; c < spec.cols; ++c) {
      const double dy = args.dy[at + c], s_hat = (args.s[at + c] - mean) * rstd;
      const double norm = rstd * (dy * weight_at(spec, c) - (spec.rms ? 0.0 : g_mean) - s_hat * g_dot);
      const double ds = norm + (args.d_residual ? args.d_residual[at + c] : 0.0);
      args.ds[at + c] = static_cast<float>(ds);
      if (args.d_branch) args.d_branch[at + c] = static_cast<float>(ds * keep_factor(spec, row, c));
      if (args.d_weight) args.d_weight[block + c] += static_cast<float>(dy * s_hat);
      if (args.d_bias) args.d_bias[block + c] += static_cast<float>(dy);
    }
  }
}

}  // namespace normlab::scalar
