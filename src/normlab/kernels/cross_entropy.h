// Cross-entropy of logits, its gradient written over them: no second matrix of rows x vocabulary.
//
//   lse = ln sum_v exp(z_v),  e = smoothing
//   loss = lse - (1 - e) z_target - e mean_v(z)        label smoothing as Szegedy et al. 2016, arXiv 1512.00567
//   dz_v = gradient_scale (exp(z_v - lse) - (1 - e) [v = target] - e / V)
//
// Logits are [rows, vocab], contiguous. A row whose target is negative is ignored: loss 0, gradient 0. Rows are
// independent: a call works on a range of them.
#pragma once

#include <cstddef>
#include <cstdint>

#include "normlab/kernels/rows.h"

namespace normlab {

struct CrossEntropySpec {
  size_t vocab = 0;
  float smoothing = 0.0F;
  bool gradient = true;         // false: the logits stay as they are
  float gradient_scale = 1.0F;  // 1 / number of rows that count, for the mean
};

// targets [rows], each below vocab; loss [rows].
void cross_entropy(const CrossEntropySpec& spec, float* logits, const int64_t* targets, float* loss,
                   RowRange rows) noexcept;

}  // namespace normlab
