// Vector code of adamw.h.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "normlab/kernels/adamw.cpp"
#include <hwy/foreach_target.h>
// After foreach_target.h.
#include <hwy/highway.h>

#include <cmath>

#include "normlab/kernels/adamw.h"
#include "normlab/kernels/rows-inl.h"

HWY_BEFORE_NAMESPACE();
namespace normlab {
namespace HWY_NAMESPACE {
namespace {

HWY_INLINE VecF set(double value) { return hn::Set(F32(), static_cast<float>(value)); }

void update(const AdamWSpec& spec, const AdamWBuffers& buffers, RowRange range) {
  // Bias corrections in double, once.
  const double step = static_cast<double>(spec.step);
  const auto step_size = set(spec.lr / (1.0 - std::pow(spec.beta1, step)));
  const auto inverse_root = set(1.0 / std::sqrt(1.0 - std::pow(spec.beta2, step)));
  const auto clip = set(spec.clip), eps = set(spec.eps), decay = set(1.0 - spec.lr * spec.weight_decay);
  const auto rest1 = set(1.0 - spec.beta1), beta2 = set(spec.beta2), rest2 = set(1.0 - spec.beta2);
  for (size_t i = range.begin; i < range.end; i += kStep) {
    const size_t left = range.end - i;
    const auto g = hn::Mul(load_left(buffers.grad + i, left), clip);
    auto m = load_left(buffers.m + i, left);
    m = hn::MulAdd(rest1, hn::Sub(g, m), m);
    const auto v = hn::MulAdd(beta2, load_left(buffers.v + i, left), hn::Mul(rest2, hn::Mul(g, g)));
    const auto change = hn::Div(hn::Mul(step_size, m), hn::MulAdd(hn::Sqrt(v), inverse_root, eps));
    store_left(m, buffers.m + i, left);
    store_left(v, buffers.v + i, left);
    store_left(hn::MulSub(load_left(buffers.param + i, left), decay, change), buffers.param + i, left);
  }
}

double sum_of_squares(const float* from, RowRange range) {
  const float* x = from + range.begin;
  const size_t n = range.end - range.begin;
  const hn::ScalableTag<double> dd;
  const hn::Rebind<float, decltype(dd)> half;
  const size_t lanes = hn::Lanes(dd);
  auto s0 = hn::Zero(dd), s1 = s0;
  size_t i = 0;
  for (; i + 2 * lanes <= n; i += 2 * lanes) {
    const auto a = hn::PromoteTo(dd, hn::LoadU(half, x + i)), b = hn::PromoteTo(dd, hn::LoadU(half, x + i + lanes));
    s0 = hn::MulAdd(a, a, s0);
    s1 = hn::MulAdd(b, b, s1);
  }
  double sum = hn::GetLane(hn::SumOfLanes(dd, hn::Add(s0, s1)));
  for (; i < n; ++i) sum += static_cast<double>(x[i]) * x[i];
  return sum;
}

void sum_into(float* x, const float* y, RowRange range) {
  for (size_t i = range.begin; i < range.end; i += kStep) {
    const size_t left = range.end - i;
    store_left(hn::Add(load_left(x + i, left), load_left(y + i, left)), x + i, left);
  }
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace normlab
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace normlab {

HWY_EXPORT(update);
HWY_EXPORT(sum_of_squares);
HWY_EXPORT(sum_into);

void adamw(const AdamWSpec& spec, const AdamWBuffers& buffers, RowRange range) noexcept {
  HWY_DYNAMIC_DISPATCH(update)(spec, buffers, range);
}

double squared_norm(const float* x, RowRange range) noexcept { return HWY_DYNAMIC_DISPATCH(sum_of_squares)(x, range); }

void add_to(float* x, const float* y, RowRange range) noexcept { HWY_DYNAMIC_DISPATCH(sum_into)(x, y, range); }

}  // namespace normlab
#endif
