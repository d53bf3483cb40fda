// Vector code of column_sums.h.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "normlab/kernels/column_sums.cpp"
#include <hwy/foreach_target.h>
// After foreach_target.h.
#include <hwy/highway.h>

#include "normlab/kernels/column_sums.h"
#include "normlab/kernels/rows-inl.h"

HWY_BEFORE_NAMESPACE();
namespace normlab {
namespace HWY_NAMESPACE {
namespace {

constexpr size_t kRowsAtOnce = 32;

// V vectors side by side. Two levels of sums, of 32 rows and of those, lose fewer bits than one.
template <size_t V>
HWY_INLINE void sums_of(const float* x, size_t row_stride, RowRange rows, size_t cols, float* out) {
  const F32 df;
  VecF total[V];
  for (VecF& sum : total) sum = hn::Zero(df);
  for (size_t begin = rows.begin; begin < rows.end; begin += kRowsAtOnce) {
    const size_t end = rows.end - begin < kRowsAtOnce ? rows.end : begin + kRowsAtOnce;
    VecF part[V];
    for (VecF& sum : part) sum = hn::Zero(df);
    for (size_t row = begin; row < end; ++row)
      for (size_t j = 0; j < V; ++j)
        part[j] = hn::Add(part[j], load_left(x + row * row_stride + j * kStep, cols - j * kStep));
    for (size_t j = 0; j < V; ++j) total[j] = hn::Add(total[j], part[j]);
  }
  for (size_t j = 0; j < V; ++j) store_left(total[j], out + j * kStep, cols - j * kStep);
}

void sums(const float* x, size_t row_stride, RowRange rows, size_t cols, float* out) {
  constexpr size_t kWide = 4 * kStep;  // four vectors side by side read whole cache lines of each row
  size_t c = 0;
  for (; c + kWide <= cols; c += kWide) sums_of<4>(x + c, row_stride, rows, kWide, out + c);
  for (; c < cols; c += kStep) sums_of<1>(x + c, row_stride, rows, cols - c, out + c);
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace normlab
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace normlab {

HWY_EXPORT(sums);

void column_sums(const float* x, size_t row_stride, RowRange rows, size_t cols, float* out) noexcept {
  HWY_DYNAMIC_DISPATCH(sums)(x, row_stride, rows, cols, out);
}

}  // namespace normlab
#endif
