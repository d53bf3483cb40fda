// AdamW (Loshchilov & Hutter 2019) with clipping by the global norm; decays only tensors of two or more dimensions.
// Constraints on weights are part of the update.
#pragma once

#include <vector>

#include "normlab/config/config.h"
#include "normlab/kernels/adamw.h"
#include "normlab/train/optimizer.h"

namespace normlab {

struct AdamWSettings {
  double beta1 = 0.9, beta2 = 0.99, eps = 1e-8, weight_decay = 0.0;
  double gain_lr = 1.0;  // of the gains of queries and keys, as a multiple of the learning rate
  bool fused = false;    // our kernel, or PyTorch's
};
AdamWSettings adamw_settings(const OptimConfig& optim);

class AdamW : public Optimizer {
 public:
  AdamW(std::vector<Parameter> parameters, AdamWSettings settings);

  NamedTensors state() const override;  // moments and step counts

  // The two halves of a step, for an optimiser that leaves some of its parameters to AdamW.
  // Adds all parts to the first and gives the norm of the sum.
  double add_parts(const std::vector<Gradients>& parts) const;
  // The same, with the norm left where the gradients are; not for the fused kernel.
  torch::Tensor add_parts_on_device(const std::vector<Gradients>& parts) const;
  // From gradients times `factor`.
  void update(const Gradients& gradients, double lr, double factor);

 private:
  // A piece of one parameter that a thread works on: flat, or a stripe of columns of a matrix.
  struct Block {
    size_t parameter, begin, end;
  };
  double make_step(const std::vector<Gradients>& parts, double lr, double clip, DeviceLoss* loss) override;
  void add_blocks(size_t parameter);
  template <class Work>
  void for_ranges(const Block& block, const Work& work) const;
  template <class Work>
  void for_blocks(const Work& work) const;
  void update_block(const AdamWSpec& spec, const AdamWBuffers& buffers, const Block& block) const;
  void fused_update(const Gradients& gradients, double lr, double factor);
  void composite_update(const Gradients& gradients, double lr, double factor);
  // As a multiple of the learning rate.
  double rate(size_t parameter) const { return parameters_[parameter].role == Role::qk_gain ? settings_.gain_lr : 1.0; }
  double decay(size_t parameter) const {
    return parameters_[parameter].tensor.dim() >= 2 ? settings_.weight_decay : 0.0;
  }

  AdamWSettings settings_;
  std::vector<Parameter> parameters_;
  std::vector<torch::Tensor> means_, squares_, steps_;
  std::vector<Block> blocks_;
};

}  // namespace normlab
