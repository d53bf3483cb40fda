// Vector code of cross_entropy.h.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "normlab/kernels/cross_entropy.cpp"
#include <hwy/foreach_target.h>
// After foreach_target.h.
#include <hwy/highway.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "normlab/kernels/cross_entropy.h"
#include "normlab/kernels/rows-inl.h"

HWY_BEFORE_NAMESPACE();
namespace normlab {
namespace HWY_NAMESPACE {
namespace {

HWY_INLINE VecF exp_minus(VecF z, VecF top) {
  return exp2_vec(hn::Mul(hn::Sub(z, top), hn::Set(F32(), 1.4426950408889634F)));
}

// The largest logit, and the sums over the row of exp(z - top) and of z - top.
struct RowSums {
  float top, exp, shifted;
};
HWY_INLINE RowSums row_sums(const float* z, size_t vocab) {
  const F32 df;
  auto top_vec = hn::Set(df, std::numeric_limits<float>::lowest());
  size_t v = 0;
  for (; v + kStep <= vocab; v += kStep) top_vec = hn::Max(top_vec, hn::LoadU(df, z + v));
  float top = hn::GetLane(hn::MaxOfLanes(df, top_vec));
  for (; v < vocab; ++v) top = std::max(top, z[v]);
  top_vec = hn::Set(df, top);
  auto sum = hn::Zero(df), shifted = hn::Zero(df);
  for (v = 0; v < vocab; v += kStep) {
    const auto value = load_left(z + v, vocab - v);
    sum = hn::Add(sum, zero_beyond(exp_minus(value, top_vec), vocab - v));
    shifted = hn::Add(shifted, zero_beyond(hn::Sub(value, top_vec), vocab - v));
  }
  return {top, sum_lanes(sum), sum_lanes(shifted)};
}

// exp(z - top) is computed again instead of being stored: with a vocabulary that leaves the cache, memory is dearer.
HWY_INLINE void write_gradient(const CrossEntropySpec& spec, float* z, size_t target, const RowSums& sums) {
  const F32 df;
  const auto top = hn::Set(df, sums.top), factor = hn::Set(df, spec.gradient_scale / sums.exp);
  const auto smooth = hn::Set(df, spec.gradient_scale * spec.smoothing / static_cast<float>(spec.vocab));
  for (size_t v = 0; v < spec.vocab; v += kStep) {
    const size_t left = spec.vocab - v;
    store_left(hn::MulSub(exp_minus(load_left(z + v, left), top), factor, smooth), z + v, left);
  }
  z[target] -= spec.gradient_scale * (1.0F - spec.smoothing);
}

void all_rows(const CrossEntropySpec& spec, float* logits, const int64_t* targets, float* loss, RowRange rows) {
  for (size_t row = rows.begin; row < rows.end; ++row) {
    float* z = logits + row * spec.vocab;
    loss[row] = 0.0F;
    if (targets[row] < 0) {
      if (spec.gradient) std::fill(z, z + spec.vocab, 0.0F);
      continue;
    }
    const size_t target = static_cast<size_t>(targets[row]);
    const RowSums sums = row_sums(z, spec.vocab);
    const float shifted = z[target] - sums.top;
    loss[row] = std::log(sums.exp) - (1.0F - spec.smoothing) * shifted -
                spec.smoothing * sums.shifted / static_cast<float>(spec.vocab);
    if (spec.gradient) write_gradient(spec, z, target, sums);
  }
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace normlab
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace normlab {

HWY_EXPORT(all_rows);

void cross_entropy(const CrossEntropySpec& spec, float* logits, const int64_t* targets, float* loss,
                   RowRange rows) noexcept {
  HWY_DYNAMIC_DISPATCH(all_rows)(spec, logits, targets, loss, rows);
}

}  // namespace normlab
#endif
