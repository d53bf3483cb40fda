// Normalised attention on tensors: softmax(scale gain q_hat k_hat^T + mask) v.
// Shape suffixes: b batch, t queries, s keys, h head, d head channel.
#pragma once

#include <torch/types.h>

#include "kernels/attention_stats.h"
#include "norm/scheme.h"
#include "ops/dropout.h"
#include "ops/rope.h"

namespace normlab {

// What is done to queries and keys before their product.
struct QkTransform {
  QkNorm norm = QkNorm::none;
  double p = 2.0;
  torch::Tensor learned_p = {};  // [1] or [h]; undefined when p is fixed
  QkScope scope = QkScope::head;
  QkOrder order = QkOrder::before_rope;
  double eps = 1e-12;
  const RopeTable* rope = nullptr;
};

struct AttentionForm {
  bool fused = false;  // our kernel, or PyTorch's
  QkTransform qk = {};
  torch::Tensor gain = {};  // [1], [h] or [h * d]; undefined for none
  double scale = 1.0;
  bool causal = true;  // key j is visible to query i when j <= i + s - t
  torch::Tensor key_lengths_b = {};  // int64: keys after them are padding; undefined: none is
  Dropout dropout = {};
  AttentionStats* stats = nullptr;  // [b, h], written by attention() on the fused path; null: not wanted
};

// Self-attention of qkv_bthd straight from the projection: n_heads query heads, then the key heads, then the value
// heads, of which there may be fewer than queries (grouped keys). Gives [b, t, n_heads, d].
torch::Tensor attention(const torch::Tensor& qkv_bthd, int64_t n_heads, const AttentionForm& form);

// Attention of q_bthd to keys and values of another sequence, kv_bshd: the key heads, then the value heads.
torch::Tensor cross_attention(const torch::Tensor& q_bthd, const torch::Tensor& kv_bshd, const AttentionForm& form);

// The pieces of attention(), for decoding with a cache of keys that are normalised once.
torch::Tensor normalise_queries(const torch::Tensor& q_bthd, const AttentionForm& form, int64_t first_position);
torch::Tensor normalise_keys(const torch::Tensor& k_bshd, const AttentionForm& form, int64_t first_position);
torch::Tensor attend(const torch::Tensor& q_hat_bthd, const torch::Tensor& k_hat_bshd, const torch::Tensor& v_bshd,
                     const AttentionForm& form);

}  // namespace normlab
