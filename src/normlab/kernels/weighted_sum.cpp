// Vector code of weighted_sum.h.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "normlab/kernels/weighted_sum.cpp"
#include <hwy/foreach_target.h>
// After foreach_target.h.
#include <hwy/highway.h>

#include <algorithm>

#include "normlab/kernels/rows-inl.h"
#include "normlab/kernels/weighted_sum.h"

HWY_BEFORE_NAMESPACE();
namespace normlab {
namespace HWY_NAMESPACE {
namespace {

void forward(const WeightedSum& args, float* y, size_t cols, RowRange rows) {
  for (size_t row = rows.begin; row < rows.end; ++row) {
    const size_t at = row * cols;
    for (size_t i = 0; i < cols; i += kStep) {
      const size_t left = cols - i;
      const auto from_stream = hn::Mul(load_left(args.a + i, left), load_left(args.h + at + i, left));
      store_left(hn::MulAdd(load_left(args.c + i, left), load_left(args.b + at + i, left), from_stream), y + at + i,
                 left);
    }
  }
}

void backward(const WeightedSum& args, const WeightedSumGrads& grads, size_t cols, RowRange rows) {
  for (size_t row = rows.begin; row < rows.end; ++row) {
    const size_t at = row * cols, block = row / kRowsPerBlock * cols;
    if (row % kRowsPerBlock == 0) std::fill_n(grads.da + block, cols, 0.0F), std::fill_n(grads.dc + block, cols, 0.0F);
    for (size_t i = 0; i < cols; i += kStep) {
      const size_t left = cols - i;
      const auto dy = load_left(grads.dy + at + i, left);
      add_left(hn::Mul(dy, load_left(args.h + at + i, left)), grads.da + block + i, left);
      add_left(hn::Mul(dy, load_left(args.b + at + i, left)), grads.dc + block + i, left);
      store_left(hn::Mul(dy, load_left(args.c + i, left)), grads.db + at + i, left);
      store_left(hn::Mul(dy, load_left(args.a + i, left)), grads.dh + at + i, left);
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

void weighted_sum_forward(const WeightedSum& args, float* y, size_t cols, RowRange rows) noexcept {
  HWY_DYNAMIC_DISPATCH(forward)(args, y, cols, rows);
}

void weighted_sum_backward(const WeightedSum& args, const WeightedSumGrads& grads, size_t cols,
                           RowRange rows) noexcept {
  HWY_DYNAMIC_DISPATCH(backward)(args, grads, cols, rows);
}

}  // namespace normlab
#endif
