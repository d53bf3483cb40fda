// Sees what a training step computes, and changes nothing. Called by several threads at once, each with its own part of
// the batch (Pass::first_sequence).
#pragma once

#include <vector>

#include "normlab/nn/pass.h"
#include "normlab/ops/attention.h"

namespace normlab {

// What a tensor is: the stream that enters a layer ([b, t, c]; of the layer after the last, what the final norm reads),
// what attention and MLP give to be added to it, and the logits of the model ([b, t, v]).
enum class Site { stream, attn_out, mlp_out, logits };

// Queries, keys and values before normalisation, as the product that made them: all three in self-attention, in
// cross-attention one of queries and one of keys and values.
struct QkvPart {
  torch::Tensor x_bthd;
  int64_t queries = 0, keys = 0, values = 0;  // heads of each, in this order
};
using QkvParts = std::vector<QkvPart>;

class Observer {
 public:
  virtual ~Observer() = default;

  virtual void see(Site site, Place place, const torch::Tensor& x, const Pass& pass) = 0;
  // What attention reads, and what is done to it. Gives the place where attention is to count, [b, n_heads], or null.
  virtual AttentionStats* attention(Place place, const QkvParts& qkv, const AttentionCall& call,
                                    const AttentionWeights& weights, const Pass& pass) = 0;
  // After the backward pass and before clipping: of every parameter in its order, from each part of the batch. Their
  // sum is the gradient.
  virtual void gradients(const std::vector<std::vector<torch::Tensor>>& parts) = 0;
};

}  // namespace normlab
