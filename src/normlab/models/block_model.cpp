#include "normlab/models/block_model.h"

#include <ATen/Parallel.h>

#include <algorithm>

#include "normlab/models/decoder_lm.h"
#include "normlab/models/encoder_decoder.h"
#include "normlab/models/init.h"

namespace normlab {

using torch::Tensor;

template <class Model>
void BlockModel<Model>::start(uint64_t seed) {
  const auto all = [this](const ParameterVisitor& visitor) { self().visit(visitor); };
  initialise(all, self().config(), self().scheme(), seed);
  constrain_at_start(all, self().scheme());
  for (const auto& [stack, blocks] : self().stacks())
    for (Block& block : *blocks) block.start();
  all([](const std::string&, Tensor& tensor, Role role) { tensor.requires_grad_(role != Role::state); });
}

template <class Model>
void BlockModel<Model>::start_from(Model on_cpu) {
  const torch::NoGradGuard no_grad;
  const NamedTensors values = on_cpu.state();
  size_t i = 0;
  self().visit([&](const std::string&, Tensor& tensor, Role role) {
    tensor.copy_(values[i++].second);
    tensor.requires_grad_(role != Role::state);
  });
}

template <class Model>
NamedTensors BlockModel<Model>::state() {
  NamedTensors list;
  self().visit([&list](const std::string& name, Tensor& tensor, Role) { list.emplace_back(name, tensor); });
  return list;
}

template <class Model>
NamedTensors BlockModel<Model>::parameters() {
  NamedTensors list;
  self().visit([&list](const std::string& name, Tensor& tensor, Role role) {
    if (role != Role::state) list.emplace_back(name, tensor);
  });
  return list;
}

template <class Model>
std::vector<WeightConstraint> BlockModel<Model>::constraints() {
  return constraints_of([this](const ParameterVisitor& visitor) { self().visit(visitor); }, self().scheme());
}

template <class Model>
LogitMaxima BlockModel<Model>::logit_maxima() const {
  if (self().scheme().qk_clip <= 0.0) return {};
  size_t deepest = 0;
  for (const auto& [stack, blocks] : self().stacks()) deepest = std::max(deepest, blocks->size());
  return {deepest, self().config().n_heads};
}

template <class Model>
void BlockModel<Model>::after_step(LogitMaxima& maxima) {
  for (const auto& [stack, blocks] : self().stacks())
    for (Block& block : *blocks) block.after_step(stack, maxima);
}

template <class Model>
void BlockModel<Model>::visit_linears(const LinearVisitor& visitor) const {
  for (const auto& [stack, blocks] : self().stacks())
    for (const Block& block : *blocks) block.visit_linears(visitor);
}

template <class Model>
void BlockModel<Model>::pack_weights() const {
  if (self().config().kernels != Kernels::fused) return;
  PackedProducts list = self().packed_outside_blocks();
  visit_linears([&](const Linear& linear) { list.emplace_back(linear.weight, linear.packed.get()); });
  at::parallel_for(0, static_cast<int64_t>(list.size()), 1, [&](int64_t begin, int64_t end) {
    for (auto i = static_cast<size_t>(begin); i < static_cast<size_t>(end); ++i) list[i].second->pack(list[i].first);
  });
}

template <class Model>
Model BlockModel<Model>::alias() const {
  Model copy = self();
  copy.visit([](const std::string&, Tensor& tensor, Role role) {
    tensor = tensor.detach().requires_grad_(role != Role::state);
  });
  return copy;
}

template class BlockModel<DecoderLm>;
template class BlockModel<EncoderDecoder>;

}  // namespace normlab
