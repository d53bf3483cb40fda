// Floating-point operations of training, as they are counted everywhere in normlab.
#pragma once

#include "normlab/config/config.h"

namespace normlab {

// Entries of the matrices that every token is multiplied with: 12 n_layers d_model^2 + V d_model in a plain model.
double matrix_entries(const ModelConfig& model, int vocab_size);

// Forward, backward, clip and update of one step.
double flops_of_step(const Config& config, int vocab_size);

// All steps and evaluations of a run whose held-out part has so many tokens.
double flops_of_run(const Config& config, int vocab_size, int64_t held_out_tokens);

}  // namespace normlab
