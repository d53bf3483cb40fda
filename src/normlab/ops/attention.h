// Normalised attention on tensors: softmax(cap(scale gain q_hat k_hat^T) + mask) v.
// Shape suffixes: b batch, t queries, s keys, h head, d head channel.
#pragma once

#include <torch/types.h>

#include <atomic>
#include <memory>
#include <vector>

#include "normlab/kernels/attention_stats.h"
#include "normlab/norm/scheme.h"
#include "normlab/ops/dropout.h"
#include "normlab/ops/rope.h"

namespace normlab {

// What is done to queries and keys before their product.
struct QkTransform {
  QkNorm norm = QkNorm::none;
  double p = 2.0;
  torch::Tensor learned_p = {};  // [1] or [h]; undefined when p is fixed
  QkScope scope = QkScope::head;
  QkOrder order = QkOrder::before_rope;
  double eps = 1e-12;
  int groups = 1;  // of channels of a head, each with a norm of its own
  const RopeTable* rope = nullptr;
};

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
  void reset() noexcept;

 private:
  std::vector<std::atomic<float>> values_;
};

struct AttentionForm {
  bool fused = false;  // our kernel, or PyTorch's
  QkTransform qk = {};
  QkAffineTensors q_affine = {}, k_affine = {};
  torch::Tensor gain = {};  // [1], [h] or [h * d]; undefined for none
  double scale = 1.0;
  RowScale row_scale = RowScale::one;
  double soft_cap = 0.0;             // 0: none
  bool causal = true;                // key j is visible to query i when j <= i + s - t
  torch::Tensor key_lengths_b = {};  // int64: keys after them are padding; undefined: none is
  Dropout dropout = {};
  AttentionStats* stats = nullptr;             // [b, h], written by attention(); null: not wanted
  std::shared_ptr<MaxLogits> max_logits = {};  // null: not wanted
};

// Self-attention of qkv_bthd straight from the projection: n_heads query heads, then the key heads, then the value
// heads, of which there may be fewer than queries (grouped keys). Gives [b, t, n_heads, d].
torch::Tensor attention(const torch::Tensor& qkv_bthd, int64_t n_heads, const AttentionForm& form);

// Attention of q_bthd to keys and values of another sequence, kv_bshd: the key heads, then the value heads.
torch::Tensor cross_attention(const torch::Tensor& q_bthd, const torch::Tensor& kv_bshd, const AttentionForm& form);

// [1, t] or [b, t]: how many keys each query sees, in double.
torch::Tensor visible_keys(int64_t t, int64_t s, const AttentionForm& form);

// The pieces of attention(), for decoding with a cache of keys that are normalised once.
torch::Tensor normalise_queries(const torch::Tensor& q_bthd, const AttentionForm& form, int64_t first_position);
torch::Tensor normalise_keys(const torch::Tensor& k_bshd, const AttentionForm& form, int64_t first_position);
torch::Tensor attend(const torch::Tensor& q_hat_bthd, const torch::Tensor& k_hat_bshd, const torch::Tensor& v_bshd,
                     const AttentionForm& form);
// The logits [b, h, t, s] that the softmax of attend() reads; those of keys that are not visible are -inf.
torch::Tensor attention_logits(const torch::Tensor& q_hat_bthd, const torch::Tensor& k_hat_bshd,
                               const AttentionForm& form);

}  // namespace normlab
