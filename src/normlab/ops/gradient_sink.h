// Where backward passes may add gradients of weights themselves instead of returning them to autograd.
#pragma once

#include <torch/types.h>

#include <functional>
#include <unordered_map>
#include <vector>

namespace normlab {

// The sums of gradients over the parts of a batch. An op that is given a sink adds its share of a weight's gradient in
// the pass that computes it and returns none to autograd: no matrix is written, read and added once more. Without a
// sink it returns its gradient, as torch::autograd::grad, hooks and retained graphs need it.
class GradientSink {
 public:
  // From now on ops may add to the gradients that `leaves` have so far.
  void collect(const std::vector<torch::Tensor>& leaves);
  void clear() { sums_.clear(); }
  // The sum of that weight; undefined where there is none yet, so that autograd has to make it.
  torch::Tensor find(const torch::Tensor& weight);

  // In the next backward pass `complete` is told of every weight of which the op at work computes the last share: its
  // gradient is there when the next one is told of. Only ops that call computed() are.
  using Listener = std::function<void(const c10::TensorImpl* weight)>;
  void listen(Listener complete);
  void computed(const c10::TensorImpl* weight);

 private:
  std::unordered_map<const c10::TensorImpl*, torch::Tensor> sums_;  // by leaf
  Listener complete_;
  std::unordered_map<const c10::TensorImpl*, int> uses_;  // of weights in a pass that is listened to
};

}  // namespace normlab
