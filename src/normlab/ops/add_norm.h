// The residual add and the norm of the stream in one: s = x + drop(branch), y = norm(s).
#pragma once

#include <torch/types.h>

#include "normlab/norm/scheme.h"
#include "normlab/ops/dropout.h"

namespace normlab {

struct NormForm {
  bool fused = false;  // our kernel, or PyTorch's
  SublayerNorm kind = SublayerNorm::none;
  double eps = 1e-5;
  double factor = 1.0;  // what the norm is multiplied by
};

struct NormWeights {
  torch::Tensor weight = {};  // [c], [1] for scale; undefined for none
  torch::Tensor bias = {};    // [c] or undefined
  torch::Tensor slope = {};   // [1], a of dyt
};

// Gain and bias multiplied by `factor`, which then needs no pass of its own.
NormWeights with_factor(const NormWeights& weights, double factor);

struct NormedSum {
  torch::Tensor sum, y;
};

// `branch` may be undefined: then s = x.
NormedSum add_norm(const torch::Tensor& x, const torch::Tensor& branch, const Dropout& how, const NormForm& form,
                   const NormWeights& weights);

}  // namespace normlab
