// The statistics of attention on materialised logits: what the fused kernel counts on its way
// (kernels/attention_stats.h).
#pragma once

#include "normlab/ops/attention.h"

namespace normlab {

// Of the heads of one sequence, from its logits [h, t, s] with -inf where a key is not visible. Rows that see none
// count for nothing.
std::vector<AttentionStats> attention_stats(const torch::Tensor& logits_hts);

// Writes `to` [b, h], one sequence and one block of query rows at a time: no more than their logits exist at once.
void count_attention(const torch::Tensor& q_hat_bthd, const torch::Tensor& k_hat_bshd, const AttentionCall& call,
                     AttentionStats* to);

}  // namespace normlab
