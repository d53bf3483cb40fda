// Vector code and scalar twin of column_sums.h.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/column_sums.cpp"
#include <hwy/foreach_target.h>
// After foreach_target.h.
#include <hwy/highway.h>

#include "kernels/column_sums.h"
#include "kernels/rows-inl.h"

HWY_BEFORE_NAMESPACE();
namespace normlab {
namespace HWY_NAMESPACE {
namespace {

void sums(const float* x, size_t row_stride, RowRange rows, size_t cols, float* out) {
  const F32 df;
  constexpr size_t kWide = 4 * kStep;  // four vectors side by side read whole cache lines of each row
  size_t c = 0;
  for (; c + kWide <= cols; c += kWide) {
    auto s0 = hn::Zero(df), s1 = s0, s2 = s0, s3 = s0;
    for (size_t row = rows.begin; row < rows.end; ++row) {
      const float* from = x + row * row_stride + c;
      s0 = hn::Add(s0, hn::LoadU(df, from));
      s1 = hn::Add(s1, hn::LoadU(df, from + kStep));
      s2 = hn::Add(s2, hn::LoadU(df, from + 2 * kStep));
      s3 = hn::Add(s3, hn::LoadU(df, from + 3 * kStep));
    }
    hn::StoreU(s0, df, out + c);
    hn::StoreU(s1, df, out + c + kStep);
    hn::StoreU(s2, df, out + c + 2 * kStep);
    hn::StoreU(s3, df, out + c + 3 * kStep);
  }
  for (; c < cols; c += kStep) {
    auto sum = hn::Zero(df);
    for (size_t row = rows.begin; row < rows.end; ++row)
      sum = hn::Add(sum, load_left(x + row * row_stride + c, cols - c));
    store_left(sum, out + c, cols - c);
  }
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace normlab
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include <algorithm>

#include "kernels/isa.h"

namespace normlab {

HWY_EXPORT(sums);

void scalar::column_sums(const float* x, size_t row_stride, RowRange rows, size_t cols, float* out) noexcept {
  for (size_t c = 0; c < cols; ++c) {
    double sum = 0.0;
    for (size_t row = rows.begin; row < rows.end; ++row) sum += x[row * row_stride + c];
    out[c] = static_cast<float>(sum);
  }
}

void column_sums(const float* x, size_t row_stride, RowRange rows, size_t cols, float* out) noexcept {
  if (scalar_kernels()) return scalar::column_sums(x, row_stride, rows, cols, out);
  HWY_DYNAMIC_DISPATCH(sums)(x, row_stride, rows, cols, out);
}

void column_sums_of_blocks(const float* x, RowRange rows, size_t cols, float* out) noexcept {
  for (size_t row = rows.begin; row < rows.end; row += kRowsPerBlock)
    column_sums(x, cols, {row, std::min(row + kRowsPerBlock, rows.end)}, cols, out + row / kRowsPerBlock * cols);
}

}  // namespace normlab
#endif
