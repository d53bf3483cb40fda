// Vector code of layer_norm.h: a row stays in the first-level cache while it is added, measured and normalised.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "normlab/kernels/layer_norm.cpp"
#include <hwy/foreach_target.h>
// After foreach_target.h.
#include <hwy/highway.h>

#include <algorithm>
#include <cmath>

#include "normlab/kernels/layer_norm.h"
#include "normlab/kernels/rows-inl.h"

HWY_BEFORE_NAMESPACE();
namespace normlab {
namespace HWY_NAMESPACE {
namespace {

HWY_INLINE void add_branch(const NormSpec& spec, const NormForward& args, size_t row) {
  const size_t at = row * spec.cols;
  const RowDropout drop = row_dropout(spec.dropout_key, spec.dropout, row);
  for (size_t c = 0; c < spec.cols; c += kStep) {
    const size_t left = spec.cols - c;
    auto branch = load_left(args.branch + at + c, left);
    if (spec.dropout != 0.0F) branch = drop(branch, c);
    store_left(hn::Add(load_left(args.x + at + c, left), branch), args.sum + at + c, left);
  }
}

struct Moments {
  float mean, rstd;
};

// In double and one by one: for rows so large that squares of floats overflow.
HWY_NOINLINE Moments moments_in_double(const NormSpec& spec, const float* s) {
  const double n = static_cast<double>(spec.cols);
  double mean = 0.0, squares = 0.0;
  for (size_t c = 0; c < spec.cols && !spec.rms; ++c) mean += s[c] / n;
  for (size_t c = 0; c < spec.cols; ++c) squares += (s[c] - mean) * (s[c] - mean);
  return {static_cast<float>(mean), static_cast<float>(1.0 / std::sqrt(squares / n + static_cast<double>(spec.eps)))};
}

HWY_INLINE Moments row_moments(const NormSpec& spec, const float* s) {
  const F32 df;
  const float n = static_cast<float>(spec.cols);
  float mean = 0.0F;
  if (!spec.rms) {
    auto sum = hn::Zero(df);
    for (size_t c = 0; c < spec.cols; c += kStep) sum = hn::Add(sum, load_left(s + c, spec.cols - c));
    mean = sum_lanes(sum) / n;
  }
  const auto mean_vec = hn::Set(df, mean);
  auto squares = hn::Zero(df);
  for (size_t c = 0; c < spec.cols; c += kStep) {
    const auto centred = zero_beyond(hn::Sub(load_left(s + c, spec.cols - c), mean_vec), spec.cols - c);
    squares = hn::MulAdd(centred, centred, squares);
  }
  const float variance = sum_lanes(squares) / n;
  if (!std::isfinite(variance)) return moments_in_double(spec, s);
  return {mean, 1.0F / std::sqrt(variance + spec.eps)};
}

void forward(const NormSpec& spec, const NormForward& args, RowRange rows) {
  const F32 df;
  for (size_t row = rows.begin; row < rows.end; ++row) {
    const size_t at = row * spec.cols;
    if (args.branch) add_branch(spec, args, row);
    if (!args.y) continue;
    const float* s = (args.branch ? args.sum : args.x) + at;
    const Moments moments = row_moments(spec, s);
    const auto mean = hn::Set(df, moments.mean), rstd = hn::Set(df, moments.rstd);
    for (size_t c = 0; c < spec.cols; c += kStep) {
      const size_t left = spec.cols - c;
      auto y = hn::Mul(hn::Sub(load_left(s + c, left), mean), rstd);
      if (spec.weight) y = hn::Mul(y, load_left(spec.weight + c, left));
      if (spec.bias) y = hn::Add(y, load_left(spec.bias + c, left));
      store_left(y, args.y + at + c, left);
    }
    if (!spec.rms) args.mean[row] = moments.mean;
    args.rstd[row] = moments.rstd;
  }
}

// mean(g) and mean(g o s_hat) of a row, and the row's share of the sums over rows.
struct GradientMeans {
  float g, dot;
};
HWY_INLINE GradientMeans gradient_means(const NormSpec& spec, const NormBackward& args, size_t row, Moments moments) {
  const F32 df;
  const size_t at = row * spec.cols, block = row / kRowsPerBlock * spec.cols;
  const auto mean = hn::Set(df, moments.mean), rstd = hn::Set(df, moments.rstd);
  auto g_sum = hn::Zero(df), dot = hn::Zero(df);
  for (size_t c = 0; c < spec.cols; c += kStep) {
    const size_t left = spec.cols - c;
    const auto dy = load_left(args.dy + at + c, left);
    const auto s_hat = hn::Mul(hn::Sub(load_left(args.s + at + c, left), mean), rstd);
    const auto product = hn::Mul(dy, s_hat);
    if (args.d_weight) add_left(product, args.d_weight + block + c, left);
    if (args.d_bias) add_left(dy, args.d_bias + block + c, left);
    if (spec.weight) {
      const auto weight = load_left(spec.weight + c, left);
      g_sum = hn::MulAdd(dy, weight, g_sum);
      dot = hn::MulAdd(product, weight, dot);
    } else {
      g_sum = hn::Add(g_sum, dy);
      dot = hn::Add(dot, product);
    }
  }
  const float n = static_cast<float>(spec.cols);
  return {spec.rms ? 0.0F : sum_lanes(g_sum) / n, sum_lanes(dot) / n};
}

void backward(const NormSpec& spec, const NormBackward& args, RowRange rows) {
  const F32 df;
  for (size_t row = rows.begin; row < rows.end; ++row) {
    const size_t at = row * spec.cols, block = row / kRowsPerBlock * spec.cols;
    if (row % kRowsPerBlock == 0)
      for (float* sums : {args.d_weight, args.d_bias})
        if (sums) std::fill(sums + block, sums + block + spec.cols, 0.0F);
    const Moments moments{spec.rms ? 0.0F : args.mean[row], args.rstd[row]};
    const GradientMeans means = gradient_means(spec, args, row, moments);
    const auto mean = hn::Set(df, moments.mean), rstd = hn::Set(df, moments.rstd);
    const auto g_mean = hn::Set(df, means.g), dot = hn::Set(df, means.dot);
    const RowDropout drop = row_dropout(spec.dropout_key, spec.dropout, row);
    for (size_t c = 0; c < spec.cols; c += kStep) {
      const size_t left = spec.cols - c;
      auto g = load_left(args.dy + at + c, left);
      if (spec.weight) g = hn::Mul(g, load_left(spec.weight + c, left));
      const auto s_hat = hn::Mul(hn::Sub(load_left(args.s + at + c, left), mean), rstd);
      auto ds = hn::Mul(rstd, hn::NegMulAdd(s_hat, dot, hn::Sub(g, g_mean)));
      if (args.d_residual) ds = hn::Add(ds, load_left(args.d_residual + at + c, left));
      store_left(ds, args.ds + at + c, left);
      if (args.d_branch) store_left(spec.dropout != 0.0F ? drop(ds, c) : ds, args.d_branch + at + c, left);
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

void norm_forward(const NormSpec& spec, const NormForward& args, RowRange rows) noexcept {
  HWY_DYNAMIC_DISPATCH(forward)(spec, args, rows);
}

void norm_backward(const NormSpec& spec, const NormBackward& args, RowRange rows) noexcept {
  HWY_DYNAMIC_DISPATCH(backward)(spec, args, rows);
}

}  // namespace normlab
#endif
