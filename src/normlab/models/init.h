// Initial values of every parameter, by its role.
#pragma once

#include <functional>

#include "normlab/config/model_config.h"
#include "normlab/nn/parameter.h"

namespace normlab {

// The same with kernels that serve such tensors: the fused ones are for float32 on the CPU.
ModelConfig for_tensors(ModelConfig config, torch::TensorOptions options);

// Whether the host cannot read such tensors.
bool is_elsewhere(torch::TensorOptions options);

// Fills the tensors that `visit` shows as a pure function of `seed`.
void initialise(const std::function<void(const ParameterVisitor&)>& visit, const ModelConfig& config,
                const NormScheme& scheme, uint64_t seed);

}  // namespace normlab
