// The gain of the logits: who shares it, how it is stored.
#pragma once

#include "normlab/config/model_config.h"
#include "normlab/nn/scaled_parameter.h"

namespace normlab {

// The gain of one attention, or of the model when all layers share it; undefined where the other holds it.
ScaledParameter layer_gain(const ModelConfig& config, const NormScheme& scheme, torch::TensorOptions options);
ScaledParameter model_gain(const ModelConfig& config, const NormScheme& scheme, torch::TensorOptions options);

}  // namespace normlab
