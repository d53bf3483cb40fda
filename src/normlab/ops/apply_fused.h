// A fused op with or without autograd.
#pragma once

#include <torch/autograd.h>

namespace normlab {

// Op::apply(), or where no gradients are wanted its forward pass alone, with a null context: autograd's bookkeeping
// takes longer than the kernels of a single token.
template <class Op, class... Args>
auto apply_fused(const Args&... args) {
  return torch::GradMode::is_enabled() ? Op::apply(args...) : Op::forward(nullptr, args...);
}

}  // namespace normlab
