// y = x / max(||x||_p, eps) along the last dimension, for any p > 0 and inf (Lopez-Rubio et al. 2026; p = 2 is QKNorm).
#pragma once

#include <torch/types.h>

namespace normlab {

// Max-scaled forward and its own backward: zero vectors, single entries, denormals and 1e30 stay finite. Types of 16
// bits are normalised in float32, which is what they give.
torch::Tensor lp_normalize(const torch::Tensor& x, double p, double eps);

// With a p that has gradients; p broadcasts against x with its last dimension reduced to one.
torch::Tensor lp_normalize(const torch::Tensor& x, const torch::Tensor& p, double eps);

}  // namespace normlab
