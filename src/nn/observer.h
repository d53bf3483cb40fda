// Sees what a training step computes, and changes nothing. Called by several threads at once, each with its own part of
// the batch (Pass::first_sequence).
#pragma once

#include "nn/pass.h"
#include "ops/attention.h"

namespace normlab {

// Where a tensor stands: the stream that enters a layer ([b, t, c]; of layer n_layers, what the final norm reads), what
// attention and MLP give to be added to it, and the logits of the model ([b, t, v]).
enum class Site { stream, attn_out, mlp_out, logits };

class Observer {
 public:
  virtual ~Observer() = default;

  virtual void see(Site site, int layer, const torch::Tensor& x, const Pass& pass) = 0;
  // Queries, keys and values before normalisation, and what is done to them. Gives the place where attention is to
  // count, [b, n_heads], or null.
  virtual AttentionStats* attention(int layer, const torch::Tensor& qkv_bthd, const AttentionForm& form,
                                    const Pass& pass) = 0;
  // After the backward pass and before clipping: of every parameter in its order, from each part of the batch. Their
  // sum is the gradient.
  virtual void gradients(const std::vector<std::vector<torch::Tensor>>& parts) = 0;
};

}  // namespace normlab
