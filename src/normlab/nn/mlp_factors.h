// The constants nu of the MLP of an approximately normalised transformer (norm/nu.h), from the widths and the
// activation in use.
#pragma once

#include "normlab/config/model_config.h"

namespace normlab {

// nu_out W_out (nu_activation u o silu(argument z)), u and z = nu_in W_in h; without a gate
// nu_out W_out (nu_activation f(argument z)).
struct MlpFactors {
  double in = 1.0, argument = 1.0, activation = 1.0, out = 1.0;
};
MlpFactors mlp_factors(const ModelConfig& config);

}  // namespace normlab
