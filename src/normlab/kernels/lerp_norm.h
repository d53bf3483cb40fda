// The residual of normalised transformers: a step from h towards the normalised branch, back onto the unit sphere.
//
//   b_hat = unit(b),  z = h + alpha o (b_hat - h),  out = unit(z)         nGPT, arXiv 2410.01131, table 1
//
//   dz = (d_out - out <d_out, out>) / |z|,  dh = (1 - alpha) o dz,  d_alpha = sum over rows of dz o (b_hat - h)
//   db = (e - b_hat <e, b_hat>) / |b|  with e = alpha o dz
//
// unit(x) = x / |x|_2, and unit(0) = 0 with zero gradient. Tensors are [rows, cols], contiguous; alpha is [cols]. Rows
// are independent: a call works on a range of them.
#pragma once

#include <cstddef>

#include "normlab/kernels/rows.h"

namespace normlab {

struct LerpForward {
  const float* h = nullptr;
  const float* branch = nullptr;
  const float* alpha = nullptr;
  float* out = nullptr;      // may be h where no backward pass follows
  float* b_scale = nullptr;  // [rows]: 1 / |b|, or 0 for a zero row
  float* z_scale = nullptr;  // [rows]: 1 / |z|, likewise
};

struct LerpBackward {
  const float* h = nullptr;
  const float* branch = nullptr;
  const float* alpha = nullptr;
  const float* out = nullptr;
  const float* b_scale = nullptr;
  const float* z_scale = nullptr;
  const float* d_out = nullptr;
  float* dh = nullptr;  // may be d_out
  float* d_branch = nullptr;
  float* d_alpha = nullptr;  // [row_blocks(rows), cols] partial sums, see rows.h; null: not wanted
};

void lerp_norm_forward(const LerpForward& args, size_t cols, RowRange rows) noexcept;
void lerp_norm_backward(const LerpBackward& args, size_t cols, RowRange rows) noexcept;

}  // namespace normlab
