// Rows of q or k on their own, as decoding needs them; the attention kernels have qk_rows-inl.h inside.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "normlab/kernels/qk_rows.cpp"
#include <hwy/foreach_target.h>
// After foreach_target.h.
#include <hwy/highway.h>

#include <algorithm>

#include "normlab/kernels/qk_rows-inl.h"

HWY_BEFORE_NAMESPACE();
namespace normlab {
namespace HWY_NAMESPACE {
namespace {

void transform_all(const RowTransform& transform, const RowAffine& affine, ConstRows x, ptrdiff_t rows, ptrdiff_t d,
                   Rows y) {
  constexpr ptrdiff_t kBlock = kRowBlock;
  HWY_ALIGN float block[kBlock * 256];
  HWY_ALIGN float scale[kRowBlock], pull[kRowBlock];
  const size_t channels = static_cast<size_t>(d);
  const auto one = hn::Set(F32(), 1.0F);
  for (ptrdiff_t first = 0; first < rows; first += kBlock) {
    const ptrdiff_t count = std::min(kBlock, rows - first);
    transform_block(transform, affine, {x.data + first * x.row_stride, x.row_stride},
                    {static_cast<size_t>(count), channels, first}, block, block, {scale, pull});
    for (ptrdiff_t r = 0; r < count; ++r)
      store_row(block + static_cast<size_t>(r) * padded(channels), channels, one, y.data + (first + r) * y.row_stride);
  }
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace normlab
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace normlab {

HWY_EXPORT(transform_all);

void transform_rows(const RowTransform& transform, const RowAffine& affine, ConstRows x, ptrdiff_t rows, ptrdiff_t d,
                    Rows y) noexcept {
  HWY_DYNAMIC_DISPATCH(transform_all)(transform, affine, x, rows, d, y);
}

}  // namespace normlab
#endif
