// Normalised attention on tensors: softmax(cap(scale gain q_hat k_hat^T) + mask) v.
// Shape suffixes: b batch, t queries, s keys, h head, d head channel.
#pragma once

#include <torch/types.h>

#include <atomic>
#include <vector>

#include "normlab/kernels/attention_stats.h"
#include "normlab/norm/attention_form.h"
#include "normlab/ops/dropout.h"
#include "normlab/ops/rope.h"

namespace normlab {

// Channel gains and biases after an rms or layer norm: [d] for all heads, or [h * d]; undefined for none.
struct QkAffineTensors {
  torch::Tensor weight, bias;
};

// The largest logit of each head since the last reset, over all threads that share it.
class MaxLogits {
 public:
  explicit MaxLogits(int64_t n_heads) : values_(static_cast<size_t>(n_heads)) { reset(); }
  void add(size_t head, float logit) noexcept;
  float of(size_t head) const noexcept { return values_[head].load(); }
  size_t heads() const noexcept { return values_.size(); }
  void reset() noexcept;

 private:
  std::vector<std::atomic<float>> values_;
};

// Learned values of one attention, as they are used; undefined where a scheme has none.
struct AttentionWeights {
  torch::Tensor gain = {};  // [1], [h] or [h * d]
  torch::Tensor p = {};     // [1] or [h]
  QkAffineTensors q_affine = {}, k_affine = {};
};

// What is computed, and for which queries and keys.
struct AttentionCall {
  AttentionForm form = {};
  bool fused = false;  // our kernel, or PyTorch's
  const RopeTable* rope = nullptr;
  bool causal = true;                // key j is visible to query i when 0 <= i + s - t - j, below form.window if set
  torch::Tensor key_lengths_b = {};  // int64: keys after them are padding; undefined: none is
  Dropout dropout = {};
  bool sdpa_dropout = false;               // composite: dropout may be PyTorch's own, with draws of its own
  int64_t most_logits = int64_t{1} << 24;  // composite: that exist at once, where they have to

  bool windowed() const { return causal && form.window > 0; }
};

// Where attention counts; null: not wanted.
struct AttentionCounts {
  AttentionStats* stats = nullptr;  // [b, h]
  MaxLogits* max_logits = nullptr;
};

// Self-attention of qkv_bthd straight from the projection: n_heads query heads, then the key heads, then the value
// heads, of which there may be fewer than queries (grouped keys). Gives [b, t, n_heads, d].
torch::Tensor attention(const torch::Tensor& qkv_bthd, int64_t n_heads, const AttentionCall& call,
                        const AttentionWeights& weights, const AttentionCounts& counts = {});

// Attention of q_bthd to keys and values of another sequence, kv_bshd: the key heads, then the value heads.
torch::Tensor cross_attention(const torch::Tensor& q_bthd, const torch::Tensor& kv_bshd, const AttentionCall& call,
                              const AttentionWeights& weights, const AttentionCounts& counts = {});

// [1, t] or [b, t]: how many keys each query sees, in double.
torch::Tensor visible_keys(int64_t t, int64_t s, const AttentionCall& call);

// The pieces of attention(), for decoding with a cache of keys that are normalised once.
torch::Tensor normalise_queries(const torch::Tensor& q_bthd, const AttentionCall& call, const AttentionWeights& weights,
                                int64_t first_position);
torch::Tensor normalise_keys(const torch::Tensor& k_bshd, const AttentionCall& call, const AttentionWeights& weights,
                             int64_t first_position);
torch::Tensor attend(const torch::Tensor& q_hat_bthd, const torch::Tensor& k_hat_bshd, const torch::Tensor& v_bshd,
                     const AttentionCall& call, MaxLogits* max_logits = nullptr);
// Rows of queries that are taken together, so that there are at most call.most_logits of them, and the first keys that
// any of them sees.
struct QueryBlock {
  int64_t begin = 0, end = 0, keys = 0;
};
std::vector<QueryBlock> query_blocks(const torch::Tensor& q_bthd, int64_t s, const AttentionCall& call);
// The logits [b, h, t, s] that the softmax of attend() reads, never of 16 bits; those of keys that are not visible are
// -inf.
torch::Tensor attention_logits(const torch::Tensor& q_hat_bthd, const torch::Tensor& k_hat_bshd,
                               const AttentionCall& call);

}  // namespace normlab
