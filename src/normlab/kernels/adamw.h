// AdamW with gradient clipping in one pass over flat buffers, and the norm that clipping needs.
//
//   g = clip grad,  m <- b1 m + (1 - b1) g,  v <- b2 v + (1 - b2) g^2
//   param <- param (1 - lr weight_decay) - lr / (1 - b1^step) m / (sqrt(v) / sqrt(1 - b2^step) + eps)
//
// Loshchilov and Hutter 2019, arXiv 1711.05101, in the arithmetic of PyTorch's fused kernel.
#pragma once

#include <cstddef>
#include <cstdint>

#include "normlab/kernels/rows.h"

namespace normlab {

struct AdamWSpec {
  double lr = 1e-3, beta1 = 0.9, beta2 = 0.999, eps = 1e-8, weight_decay = 0.01;
  int64_t step = 1;   // of this update, from 1
  double clip = 1.0;  // what gradients are multiplied by: min(1, max_norm / norm)
};

struct AdamWBuffers {
  float* param = nullptr;
  const float* grad = nullptr;
  float* m = nullptr;
  float* v = nullptr;
};

// Updates elements [range.begin, range.end); elements are independent.
void adamw(const AdamWSpec& spec, const AdamWBuffers& buffers, RowRange range) noexcept;

// The sum of squares of x in the range, in double. Threads work on blocks of kNormBlock elements; their sums are then
// added in order, so that the norm does not depend on how blocks are spread over threads.
constexpr size_t kNormBlock = 1 << 14;
double squared_norm(const float* x, RowRange range) noexcept;

// x += y in the range: gradients of several threads into one.
void add_to(float* x, const float* y, RowRange range) noexcept;

}  // namespace normlab
