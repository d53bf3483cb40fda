// Scalar twin of lerp_norm.cpp, in double.
#include <algorithm>
#include <cmath>

#include "kernels/scalar/twins.h"

namespace normlab::scalar {
namespace {

double inverse_norm(double squares) { return squares == 0.0 ? 0.0 : std::min(1.0 / std::sqrt(squares), 3e38); }

}  // namespace

void lerp_norm_forward(const LerpForward& args, size_t cols, RowRange rows) noexcept {
  for (size_t row = rows.begin; row < rows.end; ++row) {
    const float *h = args.h + row * cols, *b = args.branch + row * cols;
    double b_squares = 0.0, z_squares = 0.0;
    for (size_t c = 0; c < cols; ++c) b_squares += static_cast<double>(b[c]) * b[c];
    const double b_scale = inverse_norm(b_squares);
    const auto z = [&](size_t c) { return h[c] + args.alpha[c] * (b[c] * b_scale - h[c]); };
    for (size_t c = 0; c < cols; ++c) z_squares += z(c) * z(c);
    const double z_scale = inverse_norm(z_squares);
    for (size_t c = 0; c < cols; ++c) args.out[row * cols + c] = static_cast<float>(z(c) * z_scale);
    args.b_scale[row] = static_cast<float>(b_scale);
    args.z_scale[row] = static_cast<float>(z_scale);
  }
}

void lerp_norm_backward(const LerpBackward& args, size_t cols, RowRange rows) noexcept {
  for (size_t row = rows.begin; row < rows.end; ++row) {
    const size_t at = row * cols, block = row / kRowsPerBlock * cols;
    const double b_scale = args.b_scale[row], z_scale = args.z_scale[row];
    if (args.d_alpha && row % kRowsPerBlock == 0) std::fill_n(args.d_alpha + block, cols, 0.0F);
    double dot_out = 0.0, dot_b = 0.0;
    for (size_t c = at; c < at + cols; ++c) dot_out += static_cast<double>(args.d_out[c]) * args.out[c];
    const auto dz = [&](size_t c) { return z_scale * (args.d_out[at + c] - args.out[at + c] * dot_out); };
    for (size_t c = 0; c < cols; ++c) dot_b += args.alpha[c] * dz(c) * args.branch[at + c] * b_scale;
    for (size_t c = 0; c < cols; ++c) {
      const double d = dz(c), alpha = args.alpha[c], b_hat = args.branch[at + c] * b_scale;
      if (args.d_alpha) args.d_alpha[block + c] += static_cast<float>(d * (b_hat - args.h[at + c]));
      args.d_branch[at + c] = static_cast<float>(b_scale * (alpha * d - b_hat * dot_b));
      args.dh[at + c] = static_cast<float>((1.0 - alpha) * d);
    }
  }
}

}  // namespace normlab::scalar
