// Initial values of every parameter, by its role.
#pragma once

#include "models/decoder_lm.h"

namespace normlab {

// Fills the model's tensors as a pure function of `seed`.
void initialise(DecoderLm& model, const ModelConfig& config, uint64_t seed);

}  // namespace normlab
