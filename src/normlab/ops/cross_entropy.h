// Cross-entropy of logits against target tokens, in nats.
#pragma once

#include <torch/types.h>

namespace normlab {

// Their mean. Takes the logits [n, v] over: the fused kernel writes their gradient into the same memory.
torch::Tensor cross_entropy(torch::Tensor&& logits_nv, const torch::Tensor& targets_n, bool fused);

struct SummedEntropy {
  bool fused = false;
  double smoothing = 0.0;  // share of the target that all tokens have in equal parts
};
// The sum over rows instead of their mean; a row whose target is -1 does not count.
torch::Tensor cross_entropy_sum(torch::Tensor&& logits_nv, const torch::Tensor& targets_n, const SummedEntropy& how);

}  // namespace normlab
