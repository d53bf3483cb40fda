// The residual add and the norm of the stream in one: s = x + drop(branch), y = norm(s).
#pragma once

#include <torch/types.h>

#include "norm/scheme.h"
#include "ops/dropout.h"

namespace normlab {

struct NormForm {
  bool fused = false;  // our kernel, or PyTorch's
  SublayerNorm kind = SublayerNorm::none;
  double eps = 1e-5;
  torch::Tensor weight = {};  // [c], [1] for scale; undefined for none
  torch::Tensor bias = {};    // [c] or undefined
};

struct NormedSum {
  torch::Tensor sum, y;
};

// `branch` may be undefined: then s = x.
NormedSum add_norm(const torch::Tensor& x, const torch::Tensor& branch, const Dropout& how, const NormForm& form);

}  // namespace normlab
