// The attention that PyTorch sees, normlab::attention: q, k and v as scaled_dot_product_attention takes them.
// Shape suffixes as in ops/attention.h; h and g are the heads of queries and of keys.
#pragma once

#include <torch/types.h>

#include <optional>
#include <string>
#include <tuple>

namespace normlab {

// Every argument of the operator but q, k and v.
struct AttentionArguments {
  std::optional<torch::Tensor> gain = {};           // [1], [h] or [h, d]
  std::optional<torch::Tensor> learned_p = {};      // [1] or [g]; `p` is not read then
  std::optional<torch::Tensor> cos = {}, sin = {};  // [positions, d/2]
  std::optional<torch::Tensor> seed = {};           // of dropout: one int64 on the CPU
  std::string norm = "lp";
  double p = 2.0, eps = 1e-12, scale = 1.0;
  bool causal = true, interleaved = false, rope_first = false;
  double soft_cap = 0.0, dropout_p = 0.0;
};

// The fields of AttentionStats (kernels/attention_stats.h), in their order.
constexpr int64_t n_stat_columns = 10;

// o [b, h, t, d] in the memory order [b, t, h, d]; the log-sum-exp of each row, for the backward pass of the fused
// form, zeros in the composite one; [b, h, n_stat_columns], empty when no statistics are wanted.
using AttentionResult = std::tuple<torch::Tensor, torch::Tensor, torch::Tensor>;
AttentionResult attention_op(const torch::Tensor& q_bhtd, const torch::Tensor& k_bgsd, const torch::Tensor& v_bgsd,
                             const AttentionArguments& arguments, bool stats);

// Of q, k, v, gain and p; the last two are empty where the argument is absent.
using AttentionGradients = std::tuple<torch::Tensor, torch::Tensor, torch::Tensor, torch::Tensor, torch::Tensor>;
AttentionGradients attention_backward_op(const torch::Tensor& d_o_bhtd, const torch::Tensor& q_bhtd,
                                         const torch::Tensor& k_bgsd, const torch::Tensor& v_bgsd,
                                         const torch::Tensor& o_bhtd, const torch::Tensor& lse_bht,
                                         const AttentionArguments& arguments);

}  // namespace normlab
