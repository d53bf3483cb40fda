// AdamW (Loshchilov & Hutter 2019) on libtorch's fused kernel; decays only tensors of two or more dimensions.
#pragma once

#include <string>
#include <vector>

#include "nn/parameter.h"

namespace normlab {

struct AdamWSettings {
  double beta1 = 0.9, beta2 = 0.99, eps = 1e-8, weight_decay = 0.0;
};

class AdamW {
 public:
  AdamW(NamedTensors parameters, AdamWSettings settings);

  // One update of the parameters from their gradients.
  void step(double lr);
  // Moments and step counts under the parameters' names, sharing storage with the optimiser.
  NamedTensors state() const;

 private:
  struct Group {  // parameters with the same weight decay
    double weight_decay = 0.0;
    std::vector<std::string> names;
    std::vector<torch::Tensor> parameters, means, squares, steps;
  };
  AdamWSettings settings_;
  Group groups_[2];
};

// The global L2 norm of the gradients; when it exceeds `limit` (> 0) they are scaled down to it in place.
double clip_gradients(const std::vector<torch::Tensor>& gradients, double limit);

}  // namespace normlab
