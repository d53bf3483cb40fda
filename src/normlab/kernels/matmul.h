// Matrix products of a training step.
//
//   y = x W^T and dx = dy W: the second factor is packed once per step;  dW += dy^T x: both are packed by block
//
// A tile of 6 rows by 4 vectors of c (2 with 16 registers) stays in registers while k runs: 10 loads for 24
// multiply-adds. The second factor is packed in panels as wide as a tile, so that its loads are contiguous; blocks of
// it stay in the second-level cache (Goto and van de Geijn 2008). Every element of c is summed in the order of k: bits
// do not depend on how rows are spread over calls.
#pragma once

#include <cstddef>

namespace normlab {

// Element (i, j) is data[i * row_stride + j * col_stride]; one of the strides is 1.
struct MatrixView {
  const float* data = nullptr;
  size_t rows = 0, cols = 0;
  size_t row_stride = 0, col_stride = 1;

  MatrixView transposed() const { return {data, cols, rows, col_stride, row_stride}; }
};

// Floats that `rows` x `cols` take when packed as the second factor.
size_t packed_floats(size_t rows, size_t cols) noexcept;
// `packed` is aligned to 64 bytes.
void pack_matrix(const MatrixView& b, float* packed) noexcept;

// c [a.rows, cols] = a b, or += with `add`; rows of a are contiguous, rows of c are `cols` floats apart.
void matmul_packed(const MatrixView& a, const float* packed_b, size_t cols, bool add, float* c) noexcept;
// c [a.cols, b.cols] = a^T b, or += with `add`; rows of a and b are contiguous.
void matmul_transposed(const MatrixView& a, const MatrixView& b, bool add, float* c) noexcept;

}  // namespace normlab
