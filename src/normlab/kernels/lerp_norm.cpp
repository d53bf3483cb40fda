// Vector code of lerp_norm.h.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "normlab/kernels/lerp_norm.cpp"
#include <hwy/foreach_target.h>
// After foreach_target.h.
#include <hwy/highway.h>

#include <algorithm>
#include <cmath>

#include "normlab/kernels/lerp_norm.h"
#include "normlab/kernels/rows-inl.h"

HWY_BEFORE_NAMESPACE();
namespace normlab {
namespace HWY_NAMESPACE {
namespace {

// 1 / |x|, or 0 for a zero row. Squares that leave the range of a float are summed again in double.
HWY_INLINE float inverse_norm(const float* x, size_t cols) {
  auto sum = hn::Zero(F32());
  for (size_t c = 0; c < cols; c += kStep) {
    const auto value = load_left(x + c, cols - c);
    sum = hn::MulAdd(value, value, sum);
  }
  const float squares = sum_lanes(sum);
  if (squares > 1e-30F && squares < 1e38F) return 1.0F / std::sqrt(squares);
  double exact = 0.0;
  for (size_t c = 0; c < cols; ++c) exact += static_cast<double>(x[c]) * x[c];
  return exact == 0.0 ? 0.0F : static_cast<float>(std::min(1.0 / std::sqrt(exact), 3e38));
}

void forward(const LerpForward& args, size_t cols, RowRange rows) {
  const F32 df;
  for (size_t row = rows.begin; row < rows.end; ++row) {
    const size_t at = row * cols;
    float* out = args.out + at;
    const float b_scale = inverse_norm(args.branch + at, cols);
    const auto b_factor = hn::Set(df, b_scale);
    for (size_t c = 0; c < cols; c += kStep) {
      const size_t left = cols - c;
      const auto h = load_left(args.h + at + c, left);
      const auto towards = hn::MulSub(load_left(args.branch + at + c, left), b_factor, h);
      store_left(hn::MulAdd(load_left(args.alpha + c, left), towards, h), out + c, left);
    }
    const float z_scale = inverse_norm(out, cols);
    const auto z_factor = hn::Set(df, z_scale);
    for (size_t c = 0; c < cols; c += kStep)
      store_left(hn::Mul(load_left(out + c, cols - c), z_factor), out + c, cols - c);
    args.b_scale[row] = b_scale;
    args.z_scale[row] = z_scale;
  }
}

// <d_out, out> of a row, and <alpha o dz, b_hat> once the first is known.
HWY_INLINE float out_dot(const LerpBackward& args, size_t at, size_t cols) {
  auto dot = hn::Zero(F32());
  for (size_t c = 0; c < cols; c += kStep)
    dot = hn::MulAdd(load_left(args.d_out + at + c, cols - c), load_left(args.out + at + c, cols - c), dot);
  return sum_lanes(dot);
}

struct RowGradient {
  VecF dot, scale;
  HWY_INLINE VecF dz(VecF d_out, VecF out) const { return hn::Mul(scale, hn::NegMulAdd(out, dot, d_out)); }
};

HWY_INLINE float branch_dot(const LerpBackward& args, size_t at, size_t cols, const RowGradient& gradient,
                            VecF b_scale) {
  auto dot = hn::Zero(F32());
  for (size_t c = 0; c < cols; c += kStep) {
    const size_t left = cols - c;
    const auto dz = gradient.dz(load_left(args.d_out + at + c, left), load_left(args.out + at + c, left));
    const auto b_hat = hn::Mul(load_left(args.branch + at + c, left), b_scale);
    dot = hn::MulAdd(hn::Mul(load_left(args.alpha + c, left), dz), b_hat, dot);
  }
  return sum_lanes(dot);
}

void backward(const LerpBackward& args, size_t cols, RowRange rows) {
  const F32 df;
  for (size_t row = rows.begin; row < rows.end; ++row) {
    const size_t at = row * cols, block = row / kRowsPerBlock * cols;
    if (args.d_alpha && row % kRowsPerBlock == 0) std::fill_n(args.d_alpha + block, cols, 0.0F);
    const auto b_scale = hn::Set(df, args.b_scale[row]);
    const RowGradient gradient{hn::Set(df, out_dot(args, at, cols)), hn::Set(df, args.z_scale[row])};
    const auto dot = hn::Set(df, branch_dot(args, at, cols, gradient, b_scale));
    for (size_t c = 0; c < cols; c += kStep) {
      const size_t left = cols - c;
      const auto dz = gradient.dz(load_left(args.d_out + at + c, left), load_left(args.out + at + c, left));
      const auto alpha = load_left(args.alpha + c, left), h = load_left(args.h + at + c, left);
      const auto b_hat = hn::Mul(load_left(args.branch + at + c, left), b_scale);
      if (args.d_alpha) add_left(hn::Mul(dz, hn::Sub(b_hat, h)), args.d_alpha + block + c, left);
      store_left(hn::Mul(b_scale, hn::NegMulAdd(b_hat, dot, hn::Mul(alpha, dz))), args.d_branch + at + c, left);
      store_left(hn::NegMulAdd(alpha, dz, dz), args.dh + at + c, left);
    }
  }
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace normlab
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace normlab {

HWY_EXPORT(forward);
HWY_EXPORT(backward);

void lerp_norm_forward(const LerpForward& args, size_t cols, RowRange rows) noexcept {
  HWY_DYNAMIC_DISPATCH(forward)(args, cols, rows);
}

void lerp_norm_backward(const LerpBackward& args, size_t cols, RowRange rows) noexcept {
  HWY_DYNAMIC_DISPATCH(backward)(args, cols, rows);
}

}  // namespace normlab
#endif
