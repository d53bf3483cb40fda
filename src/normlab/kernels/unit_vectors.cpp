// Vector code of unit_vectors.h.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "normlab/kernels/unit_vectors.cpp"
#include <hwy/foreach_target.h>
// After foreach_target.h.
#include <hwy/highway.h>

#include <algorithm>
#include <cmath>

#include "normlab/kernels/rows-inl.h"
#include "normlab/kernels/unit_vectors.h"

HWY_BEFORE_NAMESPACE();
namespace normlab {
namespace HWY_NAMESPACE {
namespace {

// What a vector is multiplied by, from the sum of its squares.
HWY_INLINE float factor(double squares, bool ball) {
  const double norm = ball ? std::max(1.0, std::sqrt(squares)) : std::sqrt(squares);
  return norm == 0.0 ? 1.0F : static_cast<float>(1.0 / norm);
}

double exact_squares(const float* x, size_t count, size_t stride) {
  double sum = 0.0;
  for (size_t i = 0; i < count; ++i) sum += static_cast<double>(x[i * stride]) * x[i * stride];
  return sum;
}

// Squares that leave the range of a float are summed again in double.
HWY_INLINE bool in_range(float squares) { return squares > 1e-30F && squares < 1e38F; }

void rows_of(const UnitVectors& matrix, RowRange rows) {
  for (size_t row = rows.begin; row < rows.end; ++row) {
    float* x = matrix.data + row * matrix.cols;
    auto sum = hn::Zero(F32());
    for (size_t c = 0; c < matrix.cols; c += kStep) {
      const auto value = load_left(x + c, matrix.cols - c);
      sum = hn::MulAdd(value, value, sum);
    }
    const float squares = sum_lanes(sum);
    const float times = factor(in_range(squares) ? squares : exact_squares(x, matrix.cols, 1), matrix.ball);
    if (times == 1.0F) continue;
    const auto scale = hn::Set(F32(), times);
    for (size_t c = 0; c < matrix.cols; c += kStep)
      store_left(hn::Mul(load_left(x + c, matrix.cols - c), scale), x + c, matrix.cols - c);
  }
}

void columns_of(const UnitVectors& matrix, RowRange columns) {
  const size_t width = columns.end - columns.begin;
  HWY_ALIGN float scale[kColumnStripe + kStep] = {};
  for (size_t row = 0; row < matrix.rows; ++row) {
    const float* x = matrix.data + row * matrix.cols + columns.begin;
    for (size_t c = 0; c < width; c += kStep) {
      const auto value = load_left(x + c, width - c);
      hn::StoreU(hn::MulAdd(value, value, hn::LoadU(F32(), scale + c)), F32(), scale + c);
    }
  }
  for (size_t c = 0; c < width; ++c) {
    const float* x = matrix.data + columns.begin + c;
    scale[c] = factor(in_range(scale[c]) ? scale[c] : exact_squares(x, matrix.rows, matrix.cols), matrix.ball);
  }
  for (size_t row = 0; row < matrix.rows; ++row) {
    float* x = matrix.data + row * matrix.cols + columns.begin;
    for (size_t c = 0; c < width; c += kStep)
      store_left(hn::Mul(load_left(x + c, width - c), hn::LoadU(F32(), scale + c)), x + c, width - c);
  }
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace normlab
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace normlab {

HWY_EXPORT(rows_of);
HWY_EXPORT(columns_of);

void unit_rows(const UnitVectors& matrix, RowRange rows) noexcept { HWY_DYNAMIC_DISPATCH(rows_of)(matrix, rows); }

void unit_columns(const UnitVectors& matrix, RowRange columns) noexcept {
  HWY_DYNAMIC_DISPATCH(columns_of)(matrix, columns);
}

}  // namespace normlab
#endif
