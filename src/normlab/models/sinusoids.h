// Positions that are not learned: sines and cosines of the place (Vaswani et al. 2017, arXiv 1706.03762).
#pragma once

#include <torch/types.h>

#include "normlab/config/model_config.h"

namespace normlab {

// [length, c]. `sinusoidal`: sin and cos of place * 10000^(-2i/c) in columns 2i and 2i + 1. `sine`: the sine in both,
// as the code with which QKNorm was published computes it.
torch::Tensor sinusoids(Positions kind, int64_t length, int64_t c, torch::TensorOptions options);

}  // namespace normlab
