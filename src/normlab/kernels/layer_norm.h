// Layer norm and RMS norm over rows, with the residual add and the dropout before them in the same pass.
//
//   s = x + drop(branch)                          or s = x where there is no branch
//   y = w o (s - mean(s)) / sqrt(var(s) + eps) + b          layer norm, Ba et al. 2016, arXiv 1607.06450
//   y = w o s / sqrt(mean(s^2) + eps) + b                   RMS norm, Zhang and Sennrich 2019, arXiv 1910.07467
//
//   with s_hat the normalised row and g = w o dy:
//   ds = d_residual + rstd (g - mean(g) - s_hat mean(g o s_hat))        RMS norm: without mean(g)
//   dw = sum over rows of dy o s_hat, db = sum over rows of dy, d_branch = drop(ds)
//
// All tensors are [rows, cols], contiguous, and rows are independent: a call works on a range of them.
#pragma once

#include <cstddef>

#include "normlab/base/random.h"
#include "normlab/kernels/rows.h"

namespace normlab {

struct NormSpec {
  size_t cols = 0;
  bool rms = false;
  float eps = 1e-5F;
  const float* weight = nullptr;  // [cols]; null: 1
  const float* bias = nullptr;    // [cols]; null: 0
  float dropout = 0.0F;           // rate for the branch, 0 <= rate < 1; its rows are those of the tensor
  DropoutKey dropout_key;
};

struct NormForward {
  const float* x = nullptr;
  const float* branch = nullptr;  // null: none
  float* sum = nullptr;           // s, may be x; null where there is no branch
  float* y = nullptr;             // may be null: only the sum is wanted
  float* mean = nullptr;          // [rows], layer norm only
  float* rstd = nullptr;          // [rows]
};

struct NormBackward {
  const float* dy = nullptr;
  const float* s = nullptr;  // the sum of the forward pass, or x where there was no branch
  const float* mean = nullptr;
  const float* rstd = nullptr;
  const float* d_residual = nullptr;  // what flows back into s by other ways; null: nothing
  float* ds = nullptr;                // may be d_residual or dy
  float* d_branch = nullptr;          // null: not wanted; without dropout it equals ds
  float* d_weight = nullptr;          // [row_blocks(rows), cols] partial sums, see rows.h; null: not wanted
  float* d_bias = nullptr;            // likewise
};

void norm_forward(const NormSpec& spec, const NormForward& args, RowRange rows) noexcept;
void norm_backward(const NormSpec& spec, const NormBackward& args, RowRange rows) noexcept;

}  // namespace normlab
