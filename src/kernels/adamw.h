// AdamW with gradient clipping in one pass over flat buffers, and the norm that clipping needs.
//
//   g = clip grad,  m <- b1 m + (1 - b1) g,  v <- b2 v + (1 - b2) g^2
//   param <- param (1 - lr weight_decay) - lr / (1 - b1^step) m / (sqrt(v) / sqrt(1 - b2^step) + eps)
//
// Loshchilov and Hutter 2019, arXiv 1711.05101, in the arithmetic of PyTorch's fused kernel.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/rows.h"

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

// Sums of squares of blocks of kNormBlock elements, in double: partial[i] covers the elements from i * kNormBlock on.
// Their sum in order does not depend on how blocks are spread over threads. range.begin is a multiple of kNormBlock.
constexpr size_t kNormBlock = 1 << 14;
void squared_norm_blocks(const float* x, RowRange range, double* partial) noexcept;

namespace scalar {
void adamw(const AdamWSpec& spec, const AdamWBuffers& buffers, RowRange range) noexcept;
void squared_norm_blocks(const float* x, RowRange range, double* partial) noexcept;
}  // namespace scalar

}  // namespace normlab
