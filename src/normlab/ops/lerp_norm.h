// The residual of normalised transformers: a step from h towards the unit branch, back onto the unit sphere.
#pragma once

#include <torch/types.h>

namespace normlab {

// unit(h + alpha o (unit(b) - h)) over the last dimension; unit(x) = x / |x|_2. alpha is [c] or [1].
torch::Tensor lerp_norm(const torch::Tensor& h, const torch::Tensor& branch, const torch::Tensor& alpha, bool fused);

}  // namespace normlab
