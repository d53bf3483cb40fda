// What the row-wise kernels share: the range of rows of a call, and the blocks of rows that reductions go by.
#pragma once

#include <cstddef>

namespace normlab {

struct RowRange {
  size_t begin = 0, end = 0;
};

// Sums over rows (gradients of gains and biases) are made block by block, each into its own row of `partial`, and the
// blocks are then added in order, so that the result does not depend on how blocks are spread over threads. A range
// given to such a kernel starts at a multiple of kRowsPerBlock.
constexpr size_t kRowsPerBlock = 64;
constexpr size_t row_blocks(size_t rows) { return (rows + kRowsPerBlock - 1) / kRowsPerBlock; }

}  // namespace normlab
