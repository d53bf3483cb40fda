// Row-wise kernels spread over threads by the blocks that their reductions go by.
#pragma once

#include <ATen/Parallel.h>

#include <algorithm>

#include "normlab/kernels/rows.h"

namespace normlab {

// work(RowRange) on ranges that start at a block; small tensors stay in one thread.
template <class Work>
void parallel_rows(size_t rows, size_t cols, const Work& work) {
  constexpr size_t elements_worth_a_thread = 1 << 15;
  const size_t grain = std::max<size_t>(1, elements_worth_a_thread / std::max<size_t>(1, kRowsPerBlock * cols));
  at::parallel_for(0, static_cast<int64_t>(row_blocks(rows)), static_cast<int64_t>(grain),
                   [&](int64_t begin, int64_t end) {
                     work(RowRange{static_cast<size_t>(begin) * kRowsPerBlock,
                                   std::min(rows, static_cast<size_t>(end) * kRowsPerBlock)});
                   });
}

}  // namespace normlab
