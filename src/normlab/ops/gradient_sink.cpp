#include "normlab/ops/gradient_sink.h"

namespace normlab {

void GradientSink::collect(const std::vector<torch::Tensor>& leaves) {
  for (const torch::Tensor& leaf : leaves)
    if (leaf.grad().defined() && leaf.grad().is_contiguous())
      sums_.try_emplace(leaf.unsafeGetTensorImpl(), leaf.grad());
}

torch::Tensor GradientSink::find(const torch::Tensor& weight) {
  if (complete_) ++uses_[weight.unsafeGetTensorImpl()];
  const auto found = sums_.find(weight.unsafeGetTensorImpl());
  return found == sums_.end() ? torch::Tensor() : found->second;
}

void GradientSink::listen(Listener complete) {
  complete_ = std::move(complete);
  uses_.clear();
}

void GradientSink::computed(const c10::TensorImpl* weight) {
  if (complete_ && --uses_[weight] == 0) complete_(weight);
}

}  // namespace normlab
