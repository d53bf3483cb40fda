// Attention of new tokens to those before them, whose keys are normalised and rotated once and kept: PyTorch's
// operators, with gradients. What the fused kernels do instead is in decode_heads.h and nn/decode_layer.h.
#pragma once

#include "normlab/ops/attention.h"

namespace normlab {

// Keys and values of the tokens decoded so far, one layer.
struct KvCache {
  torch::Tensor k_hat_bshd, v_bshd;  // the first `length` of s tokens; the others are room for more
  int64_t length = 0;
};

// Self-attention of the tokens that follow those of the cache, which gets theirs: qkv_bthd as for attention(), causal.
torch::Tensor cached_attention(const torch::Tensor& qkv_bthd, int64_t n_heads, const AttentionCall& call,
                               const AttentionWeights& weights, KvCache& cache);

// normalise_queries() and normalise_keys() of tokens that all stand at `position`, [r, 1, h, d].
torch::Tensor decoded_queries(const torch::Tensor& q_r1hd, const AttentionCall& call, const AttentionWeights& weights,
                              int64_t position);
torch::Tensor decoded_keys(const torch::Tensor& k_r1hd, const AttentionCall& call, const AttentionWeights& weights,
                           int64_t position);

}  // namespace normlab
