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

struct SlotOf {
  const int32_t* slots;
  HWY_INLINE size_t operator()(size_t j) const { return slots ? static_cast<size_t>(slots[j]) : j; }
};

// V vectors of o from channel i on: sums side by side, which do not wait for each other. Each goes in the order of j.
template <size_t V>
HWY_INLINE void mix(const DecodeAttention& args, const float* weights, const float* v, float inverse, float* o,
                    size_t left) {
  const F32 df;
  const size_t row = args.heads / args.group * args.d;
  const SlotOf slot{args.slots};
  VecF sum[V];
  _Pragma("GCC unroll 8") for (size_t n = 0; n < V; ++n) sum[n] = hn::Zero(df);
  for (size_t j = 0; j < args.keys; ++j) {
    const VecF weight = hn::Set(df, weights[j]);
    const float* from = v + slot(j) * row;
    _Pragma("GCC unroll 8") for (size_t n = 0; n < V; ++n) sum[n] =
        hn::MulAdd(weight, V > 1 ? hn::LoadU(df, from + n * kStep) : load_left(from, left), sum[n]);
  }
  _Pragma("GCC unroll 8") for (size_t n = 0; n < V; ++n)
      store_left(hn::Mul(sum[n], hn::Set(df, inverse)), o + n * kStep, left - n * kStep);
}

// weights_j = log2(e) cap(scale <q, k_j>); gives the largest.
HWY_INLINE float logits(const DecodeAttention& args, const float* q, const float* k, float* weights) {
  constexpr float log2_e = 1.44269504F;
  const size_t row = args.heads / args.group * args.d;
  const SlotOf slot{args.slots};
  float largest = -3.402823466e38F;
  for (size_t j = 0; j < args.keys; ++j) {
    weights[j] = capped(dot(q, k + slot(j) * row, args.d) * args.scale, args.soft_cap) * log2_e;
    largest = weights[j] > largest ? weights[j] : largest;
  }
  return largest;
}

void decode(const DecodeAttention& args, float* weights) {
  for (size_t head = 0; head < args.heads; ++head) {
    const size_t channel = head / args.group * args.d;
    const float largest = logits(args, args.q + head * args.d, args.k + channel, weights);
    const float inverse = 1.0F / exponentials(weights, args.keys, largest);
    float* const o = args.o + head * args.d;
    for (size_t i = 0; i < args.d;) {
      const size_t left = args.d - i;
      if (left >= 8 * kStep)
        mix<8>(args, weights, args.v + channel + i, inverse, o + i, left), i += 8 * kStep;
      else if (left >= 4 * kStep)
        mix<4>(args, weights, args.v + channel + i, inverse, o + i, left), i += 4 * kStep;
      else if (left >= 2 * kStep)
        mix<2>(args, weights, args.v + channel + i, inverse, o + i, left), i += 2 * kStep;
      else
        mix<1>(args, weights, args.v + channel + i, inverse, o + i, left), i += kStep;
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
