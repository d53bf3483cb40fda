// W_q, W_k, W_v and W_o of one attention, as they were before a step and as they are after it.
#pragma once

#include <array>
#include <map>
#include <vector>

#include "normlab/config/model_config.h"
#include "normlab/nn/parameter.h"
#include "normlab/record/place.h"

namespace normlab {

// Rows of a parameter and of its bias.
struct MapRows {
  size_t index = 0;  // of the parameter
  int64_t first = 0, rows = 0;
  torch::Tensor weight, bias;          // as they are now
  torch::Tensor old_weight, old_bias;  // as they were when this was made
  double gradient = 0.0;               // norm of dL/dW

  void take_gradient(const std::vector<std::vector<torch::Tensor>>& parts);  // as Observer::gradients gets them
  double update() const;                                                     // ||W - old W|| / ||old W||
  double angle(int64_t d_head) const;  // between weight with bias before and now, mean over heads
};

using MapsOfAttention = std::array<MapRows, 4>;  // q, k, v, o
// `indices` are those of the parameters by their names.
MapsOfAttention maps_of_attention(Place place, const ModelConfig& config, const NamedTensors& parameters,
                                  const std::map<std::string, size_t>& indices);

}  // namespace normlab
