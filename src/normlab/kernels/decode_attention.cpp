// Vector code of decode_attention.h.
#include <cmath>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "normlab/kernels/decode_attention.cpp"
#include <hwy/foreach_target.h>
// After foreach_target.h.
#include <hwy/highway.h>

#include "normlab/kernels/decode_attention.h"
#include "normlab/kernels/rows-inl.h"

HWY_BEFORE_NAMESPACE();
namespace normlab {
namespace HWY_NAMESPACE {
namespace {

HWY_INLINE float dot(const float* a, const float* b, size_t n) {
  const F32 df;
  auto sum = hn::Zero(df);
  for (size_t i = 0; i < n; i += kStep) sum = hn::MulAdd(load_left(a + i, n - i), load_left(b + i, n - i), sum);
  return sum_lanes(sum);
}

HWY_INLINE float capped(float logit, float cap) { return cap > 0.0F ? cap * std::tanh(logit / cap) : logit; }

// weights_j = exp2(weights_j - largest), and their sum.
HWY_INLINE float exponentials(float* weights, size_t keys, float largest) {
  const F32 df;
  auto total = hn::Zero(df);
  for (size_t j = 0; j < keys; j += kStep) {
    const auto x = hn::Sub(load_left(weights + j, keys - j), hn::Set(df, largest));
    const auto e = zero_beyond(exp2_vec(x), keys - j);
    store_left(e, weights + j, keys - j);
    total = hn::Add(total, e);
  }
  return sum_lanes(total);
}

void decode(const DecodeAttention& args, float* weights) {
  constexpr float log2_e = 1.44269504F;
  const F32 df;
  const size_t row = args.heads / args.group * args.d;
  const auto slot = [&](size_t j) { return args.slots ? static_cast<size_t>(args.slots[j]) : j; };
  for (size_t head = 0; head < args.heads; ++head) {
    const size_t channel = head / args.group * args.d;
    float largest = -3.402823466e38F;
    for (size_t j = 0; j < args.keys; ++j) {
      weights[j] =
          capped(dot(args.q + head * args.d, args.k + slot(j) * row + channel, args.d) * args.scale, args.soft_cap) *
          log2_e;
      largest = weights[j] > largest ? weights[j] : largest;
    }
    const float inverse = 1.0F / exponentials(weights, args.keys, largest);
    for (size_t i = 0; i < args.d; i += kStep) {
      auto sum = hn::Zero(df);
      for (size_t j = 0; j < args.keys; ++j)
        sum = hn::MulAdd(hn::Set(df, weights[j]), load_left(args.v + slot(j) * row + channel + i, args.d - i), sum);
      store_left(hn::Mul(sum, hn::Set(df, inverse)), args.o + head * args.d + i, args.d - i);
    }
  }
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace normlab
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace normlab {

HWY_EXPORT(decode);

void decode_attention(const DecodeAttention& args, float* weights) noexcept {
  HWY_DYNAMIC_DISPATCH(decode)(args, weights);
}

}  // namespace normlab
#endif
