// Attention of new tokens to those before them, whose keys are normalised and rotated once and kept. The bits of a row
// do not depend on the rows beside it, so that a text does not depend on what is decoded with it.
#pragma once

#include "normlab/kernels/decode_attention.h"
#include "normlab/ops/attention.h"

namespace normlab {

// Keys and values of the tokens decoded so far, one layer.
struct KvCache {
  torch::Tensor k_hat_bshd, v_bshd;  // the first `length` of s tokens; the others are room for more
  int64_t length = 0;
};

// Self-attention of the tokens that follow those of the cache, which gets theirs: qkv_bthd as for attention(), causal.
// The fused form has no gradients, and is used where none are wanted.
torch::Tensor cached_attention(const torch::Tensor& qkv_bthd, int64_t n_heads, const AttentionCall& call,
                               const AttentionWeights& weights, KvCache& cache);

// normalise_queries() and normalise_keys() of tokens that all stand at `position`, [r, 1, h, d].
torch::Tensor decoded_queries(const torch::Tensor& q_r1hd, const AttentionCall& call, const AttentionWeights& weights,
                              int64_t position);
torch::Tensor decoded_keys(const torch::Tensor& k_r1hd, const AttentionCall& call, const AttentionWeights& weights,
                           int64_t position);

// How many of the first `keys` keys the last of them no longer sees.
int64_t keys_before_window(const AttentionCall& call, int64_t keys);

// The kernel's parameters of one row that sees `keys` keys; its pointers are the caller's.
DecodeAttention decode_unit(const AttentionCall& call, int64_t n_heads, int64_t n_kv_heads, int64_t d, int64_t keys);

}  // namespace normlab
