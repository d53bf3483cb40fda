// Scalar twin of weighted_sum.cpp, in double.
#include <algorithm>

#include "kernels/scalar/twins.h"

namespace normlab::scalar {

void weighted_sum_forward(const WeightedSum& args, float* y, size_t cols, RowRange rows) noexcept {
  for (size_t row = rows.begin; row < rows.end; ++row)
    for (size_t i = 0; i < cols; ++i)
      y[row * cols + i] = static_cast<float>(static_cast<double>(args.a[i]) * args.h[row * cols + i] +
                                             static_cast<double>(args.c[i]) * args.b[row * cols + i]);
}

void weighted_sum_backward(const WeightedSum& args, const WeightedSumGrads& grads, size_t cols,
                           RowRange rows) noexcept {
  for (size_t row = rows.begin; row < rows.end; ++row) {
    const size_t at = row * cols, block = row / kRowsPerBlock * cols;
    if (row % kRowsPerBlock == 0) std::fill_n(grads.da + block, cols, 0.0F), std::fill_n(grads.dc + block, cols, 0.0F);
    for (size_t i = 0; i < cols; ++i) {
      const float dy = grads.dy[at + i];
      grads.da[block + i] += dy * args.h[at + i];
      grads.dc[block + i] += dy * args.b[at + i];
      grads.db[at + i] = dy * args.c[i];
      grads.dh[at + i] = dy * args.a[i];
    }
  }
}

}  // namespace normlab::scalar
