// The fused attention kernel over all units of a batch, forward and backward, without autograd.
#pragma once

#include "normlab/kernels/attention.h"
#include "normlab/kernels/qk_rows.h"
#include "normlab/ops/attention.h"

namespace normlab {

// The kernel's parameters of rows of queries or keys that start at `first_position`.
RowTransform row_transform(const AttentionCall& call, int64_t first_position);
// Where the entries of `head` start in a tensor of [d] or [h * d]; null for an undefined one.
const float* affine_of(const torch::Tensor& affine, int64_t head, int64_t d);

// The tensors of a call that may have gradients, float32 on the CPU; undefined where absent. q, k and v may have any
// strides as long as the channels of a head are adjacent; the others are contiguous. Affine ones are [d] or [h * d].
struct FusedInputs {
  torch::Tensor q_bthd = {}, k_bshd = {}, v_bshd = {};
  torch::Tensor gain = {};  // [h] or [h * d]
  torch::Tensor p = {};     // [1] or one for each key head
  QkAffineTensors q_affine = {}, k_affine = {};
};

// Everything else, kept from forward to backward.
struct FusedCall : torch::CustomClassHolder {
  AttentionSpec spec;
  int64_t n_heads = 0, n_kv_heads = 0, batch = 0;
  int64_t first_row = 0;      // of dropout
  torch::Tensor key_lengths;  // [b] or undefined
  torch::Tensor cos, sin;     // of RoPE: the spec points into them
  torch::Tensor row_scale;    // [1, t], [b, t] or undefined

  int64_t units() const { return batch * n_kv_heads; }
};

// With RoPE and a causal mask, the last query stands at the position of the last key.
c10::intrusive_ptr<FusedCall> make_fused_call(const FusedInputs& in, const AttentionCall& of);

struct FusedOutput {
  torch::Tensor o_bthd, lse_bht;
};
FusedOutput fused_forward(const FusedCall& call, const FusedInputs& in, const AttentionCounts& counts);

// Written to the tensors of queries, keys and values in `to`, of any strides with adjacent channels; the others are
// made here, in the shapes of `in`.
void fused_backward(const FusedCall& call, const FusedInputs& in, const FusedOutput& out, const torch::Tensor& d_o_bthd,
                    FusedInputs& to);

}  // namespace normlab
