// y = a o h + c o b: stream and branch, weighted channel by channel.
#pragma once

#include <torch/types.h>

namespace normlab {

// The weights a and c are [cols] or [1].
struct WeightedPair {
  torch::Tensor h, a, b, c;
};
torch::Tensor weighted_sum(const WeightedPair& of, bool fused);

}  // namespace normlab
