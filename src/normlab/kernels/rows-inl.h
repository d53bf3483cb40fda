// Vector access to rows whose length need not be a whole number of vectors, and dropout of their elements.
#if defined(NORMLAB_KERNELS_ROWS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef NORMLAB_KERNELS_ROWS_INL_H_
#undef NORMLAB_KERNELS_ROWS_INL_H_
#else
#define NORMLAB_KERNELS_ROWS_INL_H_
#endif

#include <hwy/highway.h>

#include <cstring>

#include "normlab/base/random.h"
#include "normlab/kernels/exp-inl.h"

HWY_BEFORE_NAMESPACE();
namespace normlab {
namespace HWY_NAMESPACE {

constexpr size_t kStep = HWY_LANES(float);

// The vector at p of a row that has `left` more elements; lanes beyond them are 0, and are not stored.
HWY_INLINE VecF load_left(const float* p, size_t left) {
  const F32 df;
  if (HWY_LIKELY(left >= kStep)) return hn::LoadU(df, p);
  HWY_ALIGN float part[kStep] = {};
  std::memcpy(part, p, left * sizeof(float));
  return hn::Load(df, part);
}
HWY_INLINE void store_left(VecF v, float* p, size_t left) {
  const F32 df;
  if (HWY_LIKELY(left >= kStep)) return hn::StoreU(v, df, p);
  HWY_ALIGN float part[kStep];
  hn::Store(v, df, part);
  std::memcpy(p, part, left * sizeof(float));
}
HWY_INLINE void add_left(VecF v, float* p, size_t left) { store_left(hn::Add(load_left(p, left), v), p, left); }

// v with the lanes beyond the end of the row set to 0.
HWY_INLINE VecF zero_beyond(VecF v, size_t left) {
  return left >= kStep ? v : hn::IfThenElseZero(hn::FirstN(F32(), left), v);
}

HWY_INLINE float sum_lanes(VecF v) { return hn::GetLane(hn::SumOfLanes(F32(), v)); }

// Inverted dropout of one row as base/random.h defines it: 0, or value / (1 - rate).
struct RowDropout {
  uint32_t row_key, threshold;
  float scale;

  HWY_INLINE VecF operator()(VecF value, size_t column) const {
    const U32 du;
    const auto mul = hn::Mul(hn::Iota(du, static_cast<uint32_t>(column)), hn::Set(du, 0x9e3779b9U));
    auto x = hn::Add(hn::Set(du, row_key), mul);
    x = hn::Xor(x, hn::ShiftRight<16>(x));
    x = hn::Mul(x, hn::Set(du, 0x7feb352dU));
    x = hn::Xor(x, hn::ShiftRight<15>(x));
    x = hn::Mul(x, hn::Set(du, 0x846ca68bU));
    x = hn::Xor(x, hn::ShiftRight<16>(x));
    const auto dropped = hn::RebindMask(F32(), hn::Lt(x, hn::Set(du, threshold)));
    return hn::IfThenZeroElse(dropped, hn::Mul(value, hn::Set(F32(), scale)));
  }
};
HWY_INLINE RowDropout row_dropout(DropoutKey key, float rate, size_t row) {
  return {row_key(key, static_cast<uint32_t>(row)), drop_threshold(rate), 1.0F / (1.0F - rate)};
}

}  // namespace HWY_NAMESPACE
}  // namespace normlab
HWY_AFTER_NAMESPACE();

#endif
