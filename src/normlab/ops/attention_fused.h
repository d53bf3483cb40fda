// attention() on the fused CPU kernel, with its gradients.
#pragma once

#include "normlab/kernels/qk_rows.h"
#include "normlab/ops/attention.h"

namespace normlab {

// The kernel's parameters of rows of queries or keys that start at `first_position`.
RowTransform row_transform(const AttentionCall& call, int64_t first_position);
// Where the entries of `head` start in a tensor of [d] or [h * d]; null for an undefined one.
const float* affine_of(const torch::Tensor& affine, int64_t head, int64_t d);

// float32 on the CPU; everything else as attention(). Results do not depend on the number of threads.
torch::Tensor fused_attention(const torch::Tensor& qkv_bthd, int64_t n_heads, const AttentionCall& call,
                              const AttentionWeights& weights, const AttentionCounts& counts);
torch::Tensor fused_cross_attention(const torch::Tensor& q_bthd, const torch::Tensor& kv_bshd,
                                    const AttentionCall& call, const AttentionWeights& weights,
                                    const AttentionCounts& counts);

}  // namespace normlab
