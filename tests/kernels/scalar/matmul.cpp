// Scalar twin of matmul.cpp, in double.
#include "kernels/scalar/twins.h"

namespace normlab::scalar {

void matmul(const MatrixView& a, const MatrixView& b, bool add, float* c) noexcept {
  for (size_t i = 0; i < a.rows; ++i)
    for (size_t j = 0; j < b.cols; ++j) {
      double sum = add ? c[i * b.cols + j] : 0.0;
      for (size_t k = 0; k < a.cols; ++k)
        sum += static_cast<double>(a.data[i * a.row_stride + k * a.col_stride]) *
               b.data[k * b.row_stride + j * b.col_stride];
      c[i * b.cols + j] = static_cast<float>(sum);
    }
}

}  // namespace normlab::scalar
