#include "normlab/ops/attention_stats.h"

#include <algorithm>
#include <limits>

namespace normlab {

using torch::Tensor;

std::vector<AttentionStats> attention_stats(const Tensor& logits_hts) {
  constexpr double inf = std::numeric_limits<double>::infinity();
  const Tensor s = logits_hts.to(torch::kFloat64), seen = s > -inf;
  const Tensor keys = seen.sum(-1), choice = keys >= 2;
  const Tensor most = s.amax(-1), least = s.masked_fill(~seen, inf).amin(-1);
  const Tensor lse = s.logsumexp(-1), surprise = (lse.unsqueeze(-1) - s).masked_fill(~seen, 0.0);
  const Tensor entropy = ((-surprise).exp() * surprise).masked_fill(~seen, 0.0).sum(-1);
  // A row that is not counted is left out by its zero, or by an infinity in a minimum.
  const auto over_rows = [&](const Tensor& x) { return x.masked_fill(~choice, 0.0).sum(-1); };
  const Tensor columns =
      torch::stack(
          {most.amax(-1), least.amin(-1), s.masked_fill(~seen, 0.0).square().sum({-1, -2}),
           keys.sum(-1).to(torch::kFloat64), over_rows(entropy), over_rows(entropy / keys.to(torch::kFloat64).log()),
           entropy.masked_fill(~choice, inf).amin(-1), over_rows(most - least),
           over_rows((most - lse).exp().gt(0.99).to(torch::kFloat64)), choice.sum(-1).to(torch::kFloat64)},
          -1)
          .cpu()
          .contiguous();
  std::vector<AttentionStats> stats(static_cast<size_t>(columns.size(0)));
  const double* at = columns.const_data_ptr<double>();
  for (AttentionStats& head : stats) {
    const AttentionStats none;
    const bool any = at[3] > 0.0, chosen = at[9] > 0.0;
    head = {.max_logit = any ? static_cast<float>(at[0]) : none.max_logit,
            .min_logit = any ? static_cast<float>(at[1]) : none.min_logit,
            .sum_squares = at[2],
            .n_logits = static_cast<int64_t>(at[3]),
            .sum_entropy = at[4],
            .sum_relative_entropy = at[5],
            .min_entropy = chosen ? static_cast<float>(at[6]) : none.min_entropy,
            .sum_spread = at[7],
            .n_saturated = static_cast<int64_t>(at[8]),
            .n_rows = static_cast<int64_t>(at[9])};
    at += columns.size(1);
  }
  return stats;
}

void count_attention(const Tensor& q_hat_bthd, const Tensor& k_hat_bshd, const AttentionCall& call,
                     AttentionStats* to) {
  const torch::NoGradGuard no_grad;
  std::fill_n(to, q_hat_bthd.size(0) * q_hat_bthd.size(2), AttentionStats());
  for (int64_t b = 0; b < q_hat_bthd.size(0); ++b) {
    AttentionCall of_row = call;
    if (call.key_lengths_b.defined()) of_row.key_lengths_b = call.key_lengths_b.slice(0, b, b + 1);
    const Tensor q = q_hat_bthd.slice(0, b, b + 1), k = k_hat_bshd.slice(0, b, b + 1);
    for (const QueryBlock& block : query_blocks(q, k.size(1), of_row)) {
      const Tensor logits = attention_logits(q.slice(1, block.begin, block.end), k.slice(1, 0, block.keys), of_row);
      AttentionStats* head = to;
      for (const AttentionStats& each : attention_stats(logits[0])) merge(*head++, each);
    }
    to += q.size(2);
  }
}

}  // namespace normlab
