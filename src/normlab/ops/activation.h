// The activation of the MLP: gelu and relu, or swiglu of [up | gate], which halves the last dimension; of scale o x
// where there is a scale [cols].
#pragma once

#include <torch/types.h>

#include "normlab/kernels/activation.h"

namespace normlab {

torch::Tensor activate(const torch::Tensor& x, Activation kind, bool fused, const torch::Tensor& scale = {});

}  // namespace normlab
