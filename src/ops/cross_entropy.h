// Mean cross-entropy of logits against target tokens, in nats.
#pragma once

#include <torch/types.h>

namespace normlab {

// Takes the logits [n, v] over: the fused kernel writes their gradient into the same memory.
torch::Tensor cross_entropy(torch::Tensor&& logits_nv, const torch::Tensor& targets_n, bool fused);

}  // namespace normlab
