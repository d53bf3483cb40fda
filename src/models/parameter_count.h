// How many parameters a model has, without making its weights.
#pragma once

#include <cstdint>

#include "nn/model_config.h"

namespace normlab {

struct ParameterCount {
  int64_t total = 0;
  int64_t body = 0;  // without token embedding, learned positions, output head and its scales
};
// `model` resolved.
ParameterCount count_parameters(const ModelConfig& model, const NormScheme& scheme, int vocab_size);

}  // namespace normlab
