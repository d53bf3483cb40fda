// attention() on the fused CPU kernel, with its gradients.
#pragma once

#include "normlab/ops/attention.h"

namespace normlab {

// float32 on the CPU; everything else as attention(). Results do not depend on the number of threads.
torch::Tensor fused_attention(const torch::Tensor& qkv_bthd, int64_t n_heads, const AttentionCall& call,
                              const AttentionWeights& weights, const AttentionCounts& counts);
torch::Tensor fused_cross_attention(const torch::Tensor& q_bthd, const torch::Tensor& kv_bshd,
                                    const AttentionCall& call, const AttentionWeights& weights,
                                    const AttentionCounts& counts);

}  // namespace normlab
