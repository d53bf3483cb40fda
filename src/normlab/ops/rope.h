// Rotary positions: channel pairs rotated by position times frequency (Su et al. 2021, arXiv 2104.09864).
#pragma once

#include <torch/types.h>

#include "normlab/config/model_config.h"

namespace normlab {

// cos and sin of shape [length, d_head / 2] for positions 0 .. length-1.
struct RopeTable {
  RopePairing pairing = RopePairing::half;
  torch::Tensor cos, sin;
};
RopeTable make_rope(int64_t length, int64_t d_head, double base, RopePairing pairing, torch::TensorOptions options);
// Of a model; `local`: of its layers with a window.
RopeTable make_rope(const ModelConfig& config, bool local, torch::TensorOptions options);

// x_bthd at positions first .. first+T-1.
torch::Tensor rotate(const torch::Tensor& x_bthd, const RopeTable& table, int64_t first);

}  // namespace normlab
