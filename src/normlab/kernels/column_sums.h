// Sums over rows in a fixed order: partial sums of blocks, gradients of biases, gradient buffers of several threads.
//
//   out[c] = sum over the rows of x[row, c]
#pragma once

#include <cstddef>

#include "normlab/kernels/rows.h"

namespace normlab {

// Rows of x are row_stride floats apart; `out` [cols] may be the first row of the range.
void column_sums(const float* x, size_t row_stride, RowRange rows, size_t cols, float* out) noexcept;

}  // namespace normlab
