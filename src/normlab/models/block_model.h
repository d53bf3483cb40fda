// What models of blocks share: all that follows from showing their tensors and their stacks of blocks.
#pragma once

#include <utility>
#include <vector>

#include "normlab/nn/block.h"
#include "normlab/nn/weight_constraint.h"

namespace normlab {

// `Model` derives from BlockModel<Model> and has config(), scheme(), visit(), stacks() (each with its blocks) and
// packed_outside_blocks().
template <class Model>
class BlockModel {
 public:
  NamedTensors state();                                    // every tensor of a checkpoint, in a fixed order
  NamedTensors parameters();                               // the trainable ones among them
  std::vector<WeightConstraint> constraints();             // what each of parameters() is held to after a step
  void visit_linears(const LinearVisitor& visitor) const;  // of the blocks
  // What a step is to record for QK-clip; nothing with a scheme that has none.
  LogitMaxima logit_maxima() const;
  // What a scheme does after a step besides the constraints: QK-clip, a power iteration of sigma-Reparam.
  void after_step(LogitMaxima& maxima);
  // Lays the weights out for the fused products, until they change: called once per step, before threads share them.
  void pack_weights() const;
  // The same storage behind new leaves, so that threads can run backward on parts of a batch in parallel.
  Model alias() const;
  torch::Device device() const { return self().embedding_.device(); }

 protected:
  using PackedProducts = std::vector<std::pair<torch::Tensor, PackedWeight*>>;  // a weight and its packed copy

  // At the end of a constructor: initial values as a function of `seed` (models/init.cpp), constraints, gradients.
  void start(uint64_t seed);
  // The same on another device, from a model that started on the CPU: all devices begin with the same values.
  void start_from(Model on_cpu);

 private:
  Model& self() { return static_cast<Model&>(*this); }
  const Model& self() const { return static_cast<const Model&>(*this); }
};

}  // namespace normlab
