// The activation of the MLP: gelu and relu, or swiglu of [up | gate], which halves the last dimension.
#pragma once

#include <torch/types.h>

#include <string>
#include <vector>

#include "base/fields.h"
#include "kernels/activation.h"

namespace normlab {

template <>
std::vector<std::string> enum_names<Activation>();

torch::Tensor activate(const torch::Tensor& x, Activation kind, bool fused);

}  // namespace normlab
