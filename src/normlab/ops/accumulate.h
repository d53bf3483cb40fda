// Gradients of weights are added straight to those of earlier parts of the batch, in the pass that computes them.
#pragma once

#include <torch/types.h>

namespace normlab {

// The gradient that `weight` has so far, or an undefined tensor. A backward function that adds its share to it returns
// no gradient of its own: the sum is what autograd would have made, without a matrix written, read and added.
inline torch::Tensor gradient_so_far(const torch::Tensor& weight) {
  return weight.is_leaf() && weight.grad().defined() && weight.grad().is_contiguous() ? weight.grad() : torch::Tensor();
}

}  // namespace normlab
