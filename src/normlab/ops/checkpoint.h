// Values that backward computes again instead of keeping them.
#pragma once

#include <torch/types.h>

#include <functional>
#include <vector>

namespace normlab {

// Must give the same values whenever it gets the same inputs; `again`: in backward, with gradients.
using Recomputed = std::function<std::vector<torch::Tensor>(const std::vector<torch::Tensor>& inputs, bool again)>;

// The outputs of `compute`, of which only the inputs are kept. Gradients of leaves that it reads besides its inputs are
// accumulated in them, as by Tensor::backward(): torch::autograd::grad does not see those. All tensors are defined, and
// at least one input wants a gradient.
std::vector<torch::Tensor> checkpoint(const std::vector<torch::Tensor>& inputs, Recomputed compute);

}  // namespace normlab
