// AdamW (Loshchilov & Hutter 2019) with clipping by the global norm; decays only tensors of two or more dimensions.
// Constraints on weights are part of the update.
#pragma once

#include <string>
#include <vector>

#include "normlab/config/config.h"
#include "normlab/kernels/adamw.h"
#include "normlab/nn/weight_constraint.h"

namespace normlab {

struct AdamWSettings {
  double beta1 = 0.9, beta2 = 0.99, eps = 1e-8, weight_decay = 0.0;
  double gain_lr = 1.0;  // of the gains of queries and keys, as a multiple of the learning rate
  bool fused = false;    // our kernel, or PyTorch's
};
AdamWSettings adamw_settings(const OptimConfig& optim);

// The gradients of all parameters, in their order.
using Gradients = std::vector<torch::Tensor>;

class AdamW {
 public:
  // `constraints` has one entry per parameter, or is empty for none; so has `roles`, or all have the same rate.
  AdamW(NamedTensors parameters, AdamWSettings settings, std::vector<WeightConstraint> constraints = {},
        const std::vector<Role>& roles = {});

  // One update from the sum of the parts' gradients, scaled down to the norm `clip` (> 0) where theirs is larger.
  // Gives the norm before that; where it is not finite, nothing is updated. The gradients are used up.
  double step(const std::vector<Gradients>& parts, double lr, double clip);
  // Moments and step counts under the parameters' names, sharing storage with the optimiser.
  NamedTensors state() const;

 private:
  // A piece of one parameter that a thread works on: flat, or a stripe of columns of a matrix.
  struct Block {
    size_t parameter, begin, end;
  };
  void add_blocks(size_t parameter);
  template <class Work>
  void for_ranges(const Block& block, const Work& work) const;
  void update(const AdamWSpec& spec, const AdamWBuffers& buffers, const Block& block) const;
  double fused_step(const std::vector<Gradients>& parts, double lr, double clip);
  double composite_step(const std::vector<Gradients>& parts, double lr, double clip);
  double decay(size_t parameter) const { return parameters_[parameter].dim() >= 2 ? settings_.weight_decay : 0.0; }

  AdamWSettings settings_;
  std::vector<std::string> names_;
  std::vector<torch::Tensor> parameters_, means_, squares_, steps_;
  std::vector<double> rates_;  // multiples of the learning rate
  std::vector<WeightConstraint> constraints_;
  std::vector<Block> blocks_;
};

}  // namespace normlab
