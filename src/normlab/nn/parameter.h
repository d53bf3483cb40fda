// Parameters of value-type modules: each module shows its tensors to a visitor, with a name and a role.
#pragma once

#include <torch/types.h>

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "normlab/config/parameters.h"

namespace normlab {

// Called with the member itself, so that a visitor can read, fill, replace or alias it.
using ParameterVisitor = std::function<void(const std::string& name, torch::Tensor& tensor, Role role)>;

using NamedTensors = std::vector<std::pair<std::string, torch::Tensor>>;

}  // namespace normlab
