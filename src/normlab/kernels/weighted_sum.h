// The residual of the approximately normalised transformer: a weighted sum of stream and branch, channel by channel.
//
//   y = a o h + c o b                       anGPT, arXiv 2505.22014: a = (1 - alpha) nu(alpha), c = alpha nu(alpha)
//   dh = a o dy, db = c o dy, da = sum over rows of dy o h, dc = sum over rows of dy o b
//
// Tensors are [rows, cols], contiguous; a and c are [cols]. Rows are independent: a call works on a range of them.
#pragma once

#include <cstddef>

#include "normlab/kernels/rows.h"

namespace normlab {

struct WeightedSum {
  const float* h = nullptr;
  const float* b = nullptr;
  const float* a = nullptr;
  const float* c = nullptr;
};

struct WeightedSumGrads {
  const float* dy = nullptr;
  float* dh = nullptr;  // may be dy
  float* db = nullptr;
  float* da = nullptr;  // [row_blocks(rows), cols] partial sums, see rows.h
  float* dc = nullptr;  // likewise
};

void weighted_sum_forward(const WeightedSum& args, float* y, size_t cols, RowRange rows) noexcept;
void weighted_sum_backward(const WeightedSum& args, const WeightedSumGrads& grads, size_t cols, RowRange rows) noexcept;

}  // namespace normlab
