// Parameters of value-type modules: each module shows its tensors to a visitor, with a name and a role.
#pragma once

#include <torch/types.h>

#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace normlab {

// What a tensor is for; the initialisation table (models/init.cpp) has a row for each.
enum class Role {
  embedding,
  language,
  position,
  weight,
  residual_weight,  // of a map onto the residual stream
  bias,
  norm_gain,
  norm_bias,
  qk_gain,
  qk_p,
  scale,  // alpha, s_uv, s_z, gamma: starts as its module says
  state,  // not trained, but part of a checkpoint
};

// Called with the member itself, so that a visitor can read, fill, replace or alias it.
using ParameterVisitor = std::function<void(const std::string& name, torch::Tensor& tensor, Role role)>;

using NamedTensors = std::vector<std::pair<std::string, torch::Tensor>>;

}  // namespace normlab
