// Scalar twin of column_sums.cpp, in double.
#include "kernels/scalar/twins.h"

namespace normlab::scalar {

void column_sums(const float* x, size_t row_stride, RowRange rows, size_t cols, float* out) noexcept {
  for (size_t c = 0; c < cols; ++c) {
    double sum = 0.0;
    for (size_t row = rows.begin; row < rows.end; ++row) sum += x[row * row_stride + c];
    out[c] = static_cast<float>(sum);
  }
}

}  // namespace normlab::scalar
