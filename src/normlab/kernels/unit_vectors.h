// The constraint on weights after an update: rows or columns of a matrix brought to norm 1, or to norm at most 1.
//
//   w <- w / |w|_2,   or with `ball`   w <- w / max(1, |w|_2)        a zero vector stays zero
//
// Vectors are independent: a call works on a range of rows, or of columns.
#pragma once

#include <cstddef>

#include "normlab/kernels/rows.h"

namespace normlab {

struct UnitVectors {
  float* data = nullptr;  // [rows, cols], contiguous
  size_t rows = 0, cols = 0;
  bool ball = false;
};

void unit_rows(const UnitVectors& matrix, RowRange rows) noexcept;

// At most kColumnStripe columns a call.
constexpr size_t kColumnStripe = 256;
void unit_columns(const UnitVectors& matrix, RowRange columns) noexcept;

}  // namespace normlab
