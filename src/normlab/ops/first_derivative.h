// A fused backward pass has no derivative of its own: asked for one, it says so instead of giving none.
#pragma once

#include <torch/types.h>

#include "normlab/base/error.h"

namespace normlab {

// At the start of such a pass, which autograd runs with gradients enabled only under create_graph.
inline void require_first_derivative(const char* op) {
  if (torch::GradMode::is_enabled())
    throw Error(op, "the fused form has no second derivatives; got create_graph. Use model.kernels=composite.");
}

}  // namespace normlab
