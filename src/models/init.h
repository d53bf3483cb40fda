// Initial values of every parameter, by its role.
#pragma once

#include <functional>

#include "nn/model_config.h"
#include "nn/parameter.h"

namespace normlab {

// Fills the tensors that `visit` shows as a pure function of `seed`.
void initialise(const std::function<void(const ParameterVisitor&)>& visit, const ModelConfig& config,
                const NormScheme& scheme, uint64_t seed);

}  // namespace normlab
