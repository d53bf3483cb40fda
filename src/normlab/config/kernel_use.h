// Which code computes each part of a model: said to the user, never guessed.
#pragma once

#include <string>
#include <vector>

#include "normlab/config/model_config.h"

namespace normlab {

struct KernelUse {
  std::string part, served_by;
};

// Of a resolved configuration.
std::vector<KernelUse> kernel_use(const ModelConfig& config, const NormScheme& scheme);

}  // namespace normlab
