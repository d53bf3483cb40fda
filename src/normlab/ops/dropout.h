// Dropout as a pure function of (key, row, column): no generator state, so resume and batch splits change nothing.
#pragma once

#include <torch/types.h>

#include "normlab/base/random.h"

namespace normlab {

struct Dropout {
  double rate = 0.0;  // 0 leaves the input untouched
  DropoutKey key = {};
  int64_t first_row = 0;  // index of the input's first row among the rows of the whole batch
  // The input has only some of the rows in the last dimension but one.
  struct Block {
    int64_t of_rows = 0;  // that there are in all; 0: it has all of them
    int64_t first = 0;
  };
  Block block = {};
};

// x viewed as rows of its last dimension; kept values are divided by 1 - rate.
torch::Tensor dropout(const torch::Tensor& x, const Dropout& how);

}  // namespace normlab
