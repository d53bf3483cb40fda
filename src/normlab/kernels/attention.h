// Fused attention with normalised queries and keys, forward and backward: parameters and entry points.
//
//   q_hat_i = T_q(q_i), k_hat_j = T_k(k_j)                         qk_rows.h: norm over the head, rotary positions
//   S_ij    = scale * row_scale_i * <gain o q_hat_i, k_hat_j>      then c tanh(S/c) with a soft-cap c
//   A_ij    = softmax_j(S_ij) over the visible keys                j < kv_len, and when causal 0 <= i + tk - tq - j,
//                                                                  which is below the window if there is one
//   O_i     = sum_j drop(A_ij) v_j                                 a row that sees no key gives 0 and zero gradients
//
//   dP = dO V^T (dropped like A), dS = A o (dP - rowsum(dO o O)), times 1 - (S/c)^2 with a soft-cap,
//   dV = drop(A)^T dO, d q_hat = scale gain dS K_hat, d k_hat = scale gain dS^T Q_hat, then back through T.
//
// Tiles and the running softmax follow Dao et al. 2022, arXiv 2205.14135; no tq x tk matrix exists, and A is computed
// again in the backward pass from the log-sum-exp of each row. A unit is one batch row and one key head with the
// `group` query heads that share it. One call works on one unit in one thread; units are independent, so results do
// not depend on how they are spread over threads.
#pragma once

#include <cstddef>
#include <cstdint>

#include "normlab/base/random.h"
#include "normlab/kernels/attention_stats.h"
#include "normlab/kernels/qk_rows.h"

namespace normlab {

// What is the same for every unit of a call. Strides are in floats.
struct AttentionSpec {
  ptrdiff_t tq = 0, tk = 0;  // queries, keys
  ptrdiff_t d = 0;           // channels of a head, 1 .. 256
  ptrdiff_t group = 1;       // query heads of a unit
  bool causal = false;
  ptrdiff_t window = 0;  // of a causal mask: how many keys a query sees, up to its own; 0: all
  float scale = 1.0F;
  float soft_cap = 0.0F;             // 0: none
  bool channel_gain = false;         // unit.gain holds [group, d] instead of [group]
  RowTransform q = {}, k = {};       // rotary tables start at the first query, the first key
  const float* row_scale = nullptr;  // [tq], or none
  float dropout = 0.0F;              // rate, 0 <= rate < 1
  DropoutKey dropout_key = {};
  // Distance of rows and of the query heads of a group.
  ptrdiff_t q_row = 0, q_head = 0;
  ptrdiff_t k_row = 0, v_row = 0;
  ptrdiff_t o_row = 0, o_head = 0;
  ptrdiff_t q_affine_head = 0;  // 0: the query heads share the gains of q_affine; d: each has its own
};

// The tensors of one unit; head h of the group is at `+ h * head stride`.
struct AttentionUnit {
  const float* q = nullptr;
  const float* k = nullptr;
  const float* v = nullptr;
  const float* gain = nullptr;  // null: 1
  RowAffine q_affine = {}, k_affine = {};
  ptrdiff_t kv_len = 0;             // keys at kv_len and later are padding; tk when there is none
  uint32_t dropout_row = 0;         // row of the first query in base/random.h; head h starts at + h * tq
  float* o = nullptr;               // written by forward, read by backward
  float* lse = nullptr;             // [group, tq]: ln sum_j exp(S_ij), +inf where no key is visible; as o
  AttentionStats* stats = nullptr;  // [group], written by forward; null: not wanted
};

// Gradients of one unit: all written, never accumulated; null where not wanted, except dq, dk, dv.
struct AttentionGrads {
  const float* d_o = nullptr;
  ptrdiff_t do_row = 0, do_head = 0;
  float* dq = nullptr;
  float* dk = nullptr;
  float* dv = nullptr;
  ptrdiff_t dq_row = 0, dq_head = 0, dk_row = 0, dv_row = 0;
  float* d_gain = nullptr;  // as unit.gain
  RowGrads q = {}, k = {};  // gain and bias of q are [group, d]; p sums over the unit
};

// Bytes of scratch that a call needs; any alignment will do.
size_t attention_scratch_bytes(const AttentionSpec& spec, bool backward) noexcept;

void attention_forward(const AttentionSpec& spec, const AttentionUnit& unit, void* scratch) noexcept;
void attention_backward(const AttentionSpec& spec, const AttentionUnit& unit, const AttentionGrads& grads,
                        void* scratch) noexcept;

}  // namespace normlab
