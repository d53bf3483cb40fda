#include "normlab/pytorch/attention_op.h"

#include <torch/autograd.h>

#include <algorithm>
#include <cmath>

#include "normlab/ops/attention_stats.h"
#include "normlab/ops/attention_units.h"
#include "normlab/pytorch/require.h"

namespace normlab {
namespace {

using torch::Tensor;
constexpr const char* where = "normlab.attention";
constexpr int64_t most_fused_channels = 256;

Tensor by_position(const Tensor& x_bhtd) { return x_bhtd.transpose(1, 2); }

void require_shapes(const Tensor& q, const Tensor& k, const Tensor& v, const AttentionArguments& a) {
  require(q.dim() == 4 && k.dim() == 4 && v.dim() == 4, where,
          "q, k and v must have shape [batch, heads, length, d_head]; got ", shapes({q, k, v}));
  const int64_t b = q.size(0), h = q.size(1), d = q.size(3), g = k.size(1), s = k.size(2);
  require(
      k.sizes() == v.sizes() && k.size(0) == b && k.size(3) == d && g > 0 && h % g == 0, where,
      "k and v must have the batch and d_head of q, equal shapes, and a number of heads that divides that of q; got ",
      shapes({q, k, v}));
  require(d > 0, where, "d_head must be at least 1; got ", shapes({q}));
  require(!a.causal || q.size(2) <= s, where, "causal attention needs at least as many keys as queries; got ",
          shapes({q, k}));
  for (const auto& each : {a.gain, a.learned_p, a.cos, a.sin})
    require(!each || each->device() == q.device(), where, "all tensors must be on one device; got ",
            c10::str(q.device()), " and ", each ? c10::str(each->device()) : "");
  for (const Tensor& each : {k, v})
    require(each.device() == q.device() && each.scalar_type() == q.scalar_type(), where,
            "q, k and v must have one dtype and device; got ", describe(q), " and ", describe(each));
  require(torch::isFloatingType(q.scalar_type()), where, "q, k and v must be of a float type; got ", describe(q));
  if (a.gain)
    require(a.gain->numel() == 1 || a.gain->numel() == h || a.gain->numel() == h * d, where,
            "gain must have 1, heads or heads x d_head entries; got ", shapes({*a.gain}), " for ", h, " heads of ", d);
  if (a.learned_p)
    require(a.learned_p->numel() == 1 || a.learned_p->numel() == g, where,
            "p must have one entry, or one for each head of keys; got ", shapes({*a.learned_p}));
  require(a.cos.has_value() == a.sin.has_value(), where, "rope must have cos and sin");
  if (!a.cos) return;
  require(d % 2 == 0, where, "rope needs an even d_head; got ", d);
  for (const Tensor& table : {*a.cos, *a.sin})
    require(table.dim() == 2 && table.size(0) >= std::max(q.size(2), s) && table.size(1) == d / 2, where,
            "cos and sin of rope must be [positions, d_head / 2] with a row for each position; got ", shapes({table}),
            " for q, k = ", shapes({q, k}));
}

void require_numbers(const AttentionArguments& a) {
  require(a.p > 0.0, where, "p must be above 0, inf included; got ", a.p);
  require(a.eps > 0.0, where, "eps must be above 0; got ", a.eps);
  require(std::isfinite(a.scale), where, "scale must be finite; got ", a.scale);
  require(a.soft_cap >= 0.0, where, "soft_cap must be at least 0, which means none; got ", a.soft_cap);
  require(a.dropout_p >= 0.0 && a.dropout_p < 1.0, where, "dropout_p must be in [0, 1); got ", a.dropout_p);
  require(a.dropout_p == 0.0 || (a.seed && a.seed->numel() == 1 && a.seed->scalar_type() == torch::kInt64), where,
          "dropout needs a seed: one int64");
}

// The call and what it points to.
struct Call {
  AttentionCall call;
  RopeTable rope;
};

void fill(Call& to, const AttentionArguments& a, torch::ScalarType type) {
  to.call.form = {.qk = qk_norm_of(a.norm, where),
                  .p = a.p,
                  .order = a.rope_first ? QkOrder::after_rope : QkOrder::before_rope,
                  .qk_eps = a.eps,
                  .logit_scale = a.scale,
                  .soft_cap = a.soft_cap};
  to.call.causal = a.causal;
  if (a.dropout_p > 0.0)
    to.call.dropout = {.rate = a.dropout_p,
                       .key = dropout_key(stream_key(static_cast<uint64_t>(a.seed->item<int64_t>())))};
  if (!a.cos) return;
  to.rope = {.pairing = a.interleaved ? RopePairing::interleaved : RopePairing::half,
             .cos = a.cos->to(type).contiguous(),
             .sin = a.sin->to(type).contiguous()};
  to.call.rope = &to.rope;
}

// The fused kernel multiplies by the gain after the rotation, which only a gain of whole heads lets it do.
bool is_fused(const Tensor& q, const AttentionArguments& a) {
  const bool channel_gain = a.gain && a.gain->numel() > q.size(1);
  return q.is_cpu() && q.scalar_type() == torch::kFloat32 && q.size(3) <= most_fused_channels &&
         !(a.cos && !a.rope_first && channel_gain);
}

Tensor adjacent_channels(const Tensor& x) { return x.stride(-1) == 1 || x.size(-1) == 1 ? x : x.contiguous(); }
Tensor flat_floats(const std::optional<Tensor>& tensor) {
  return tensor ? tensor->to(torch::kFloat32).flatten().contiguous() : Tensor();
}

FusedInputs fused_inputs(const Tensor& q, const Tensor& k, const Tensor& v, const AttentionArguments& a) {
  FusedInputs in{.q_bthd = by_position(adjacent_channels(q)),
                 .k_bshd = by_position(adjacent_channels(k)),
                 .v_bshd = by_position(adjacent_channels(v)),
                 .gain = flat_floats(a.gain),
                 .p = flat_floats(a.learned_p)};
  if (in.gain.defined() && in.gain.numel() == 1) in.gain = in.gain.expand({q.size(1)}).contiguous();
  return in;
}

Tensor columns_of(const std::vector<AttentionStats>& stats, int64_t b, int64_t h) {
  const Tensor columns = torch::empty({b, h, n_stat_columns}, torch::kFloat64);
  double* at = columns.mutable_data_ptr<double>();
  for (const AttentionStats& s : stats)
    for (const double value :
         {double(s.max_logit), double(s.min_logit), s.sum_squares, double(s.n_logits), s.sum_entropy,
          s.sum_relative_entropy, double(s.min_entropy), s.sum_spread, double(s.n_saturated), double(s.n_rows)})
      *at++ = value;
  return columns;
}

struct Composite {
  Tensor o, stats;  // [b, h, t, d]; undefined unless wanted
};

// Types of 16 bits are normalised in float32, as PyTorch's own norms are.
Composite composite(const Tensor& q, const Tensor& k, const Tensor& v, const AttentionArguments& a, bool stats) {
  const auto type = q.scalar_type(), wide = c10::elementSize(type) < 4 ? torch::kFloat32 : type;
  Call call;
  fill(call, a, wide);
  const auto widened = [&](const std::optional<Tensor>& tensor) {
    return tensor ? tensor->to(wide).flatten() : Tensor();
  };
  AttentionWeights weights{.gain = widened(a.gain), .p = widened(a.learned_p)};
  const int64_t first = a.causal ? k.size(2) - q.size(2) : 0, group = q.size(1) / k.size(1);
  const Tensor k_hat = normalise_keys(by_position(k).to(wide), call.call, weights, 0).to(type);
  if (weights.p.defined() && weights.p.numel() > 1) weights.p = weights.p.repeat_interleave(group);
  const Tensor q_hat = normalise_queries(by_position(q).to(wide), call.call, weights, first).to(type);
  Composite out;
  if (stats) {
    std::vector<AttentionStats> counted(static_cast<size_t>(q.size(0) * q.size(1)));
    count_attention(q_hat, k_hat, call.call, counted.data());
    out.stats = columns_of(counted, q.size(0), q.size(1)).to(q.device());
  }
  out.o = by_position(attend(q_hat, k_hat, by_position(v), call.call));
  return out;
}

// In the memory order that the operator promises.
Tensor ordered(const Tensor& o_bhtd) {
  const Tensor o_bthd = by_position(o_bhtd);
  return by_position(torch::empty(o_bthd.sizes(), o_bthd.options()).copy_(o_bthd));
}

Tensor copy_like(const Tensor& grad, const Tensor& x) { return torch::empty_like(x).copy_(grad.reshape(x.sizes())); }
Tensor zeros_or_none(const std::optional<Tensor>& x, const Tensor& q) {
  return x ? torch::zeros_like(*x) : torch::empty({0}, q.options());
}

AttentionGradients composite_backward(const Tensor& d_o, const Tensor& q, const Tensor& k, const Tensor& v,
                                      const AttentionArguments& a) {
  const WithAutograd with_autograd;
  const auto leaf = [](const Tensor& x) { return x.detach().requires_grad_(true); };
  AttentionArguments of = a;
  torch::autograd::variable_list leaves = {leaf(q), leaf(k), leaf(v)};
  if (a.gain) leaves.push_back(leaf(*a.gain)), of.gain = leaves.back();
  if (a.learned_p) leaves.push_back(leaf(*a.learned_p)), of.learned_p = leaves.back();
  const Tensor out = composite(leaves[0], leaves[1], leaves[2], of, /*stats=*/false).o;
  // Without a norm nothing depends on p.
  const auto grads = torch::autograd::grad({out}, leaves, {d_o}, /*retain_graph=*/false, /*create_graph=*/false,
                                           /*allow_unused=*/true);
  const torch::NoGradGuard no_grad;
  const auto of_weight = [&](const std::optional<Tensor>& x, size_t i) {
    return x && grads[i].defined() ? copy_like(grads[i], *x) : zeros_or_none(x, q);
  };
  return {copy_like(grads[0], q), copy_like(grads[1], k), copy_like(grads[2], v), of_weight(a.gain, 3),
          of_weight(a.learned_p, leaves.size() - 1)};
}

AttentionGradients fused_op_backward(const Tensor& d_o, const Tensor& q, const Tensor& k, const Tensor& v,
                                     const FusedOutput& out, const AttentionArguments& a) {
  Call call;
  fill(call, a, torch::kFloat32);
  const FusedInputs in = fused_inputs(q, k, v, a);
  const Tensor d_q = torch::empty_like(q), d_k = torch::empty_like(k), d_v = torch::empty_like(v);
  FusedInputs to{.q_bthd = by_position(adjacent_channels(d_q)),
                 .k_bshd = by_position(adjacent_channels(d_k)),
                 .v_bshd = by_position(adjacent_channels(d_v))};
  fused_backward(*make_fused_call(in, call.call), in, out, by_position(adjacent_channels(d_o)), to);
  const auto store = [](const Tensor& x, const Tensor& written) {
    if (x.const_data_ptr() != written.const_data_ptr()) x.copy_(by_position(written));
  };
  store(d_q, to.q_bthd), store(d_k, to.k_bshd), store(d_v, to.v_bshd);
  const auto of_weight = [&](const Tensor& grad, const std::optional<Tensor>& x) {
    return x ? copy_like(x->numel() == 1 ? grad.sum() : grad, *x) : zeros_or_none(x, q);
  };
  return {d_q, d_k, d_v, of_weight(to.gain, a.gain), of_weight(to.p, a.learned_p)};
}

}  // namespace

AttentionResult attention_op(const Tensor& q, const Tensor& k, const Tensor& v, const AttentionArguments& a,
                             bool stats) {
  require_shapes(q, k, v, a);
  require_numbers(a);
  const torch::NoGradGuard no_grad;
  const auto options = q.options();
  const int64_t b = q.size(0), h = q.size(1), t = q.size(2);
  const Tensor none = torch::empty({0}, options.dtype(torch::kFloat64));
  const bool empty = q.numel() == 0 || k.numel() == 0;
  if (!is_fused(q, a) || empty) {
    const Composite out = composite(q, k, v, a, stats && !empty);
    const Tensor counted = empty ? torch::zeros({b, h, n_stat_columns}, none.options()) : out.stats;
    return {ordered(empty ? torch::zeros_like(q) : out.o), torch::zeros({b, h, t}, options.dtype(torch::kFloat32)),
            stats ? counted : none};
  }
  Call call;
  fill(call, a, torch::kFloat32);
  const FusedInputs in = fused_inputs(q, k, v, a);
  std::vector<AttentionStats> counted(static_cast<size_t>(stats ? b * h : 0));
  const FusedOutput out =
      fused_forward(*make_fused_call(in, call.call), in, {.stats = stats ? counted.data() : nullptr});
  return {by_position(out.o_bthd), out.lse_bht, stats ? columns_of(counted, b, h) : none};
}

AttentionGradients attention_backward_op(const Tensor& d_o, const Tensor& q, const Tensor& k, const Tensor& v,
                                         const Tensor& o, const Tensor& lse, const AttentionArguments& a) {
  require_shapes(q, k, v, a);
  require_numbers(a);
  for (const Tensor& each : {d_o, o})
    require(each.sizes() == q.sizes() && each.scalar_type() == q.scalar_type() && each.device() == q.device(), where,
            "gradient and output must be like q; got ", shapes({each, q}), ", ", describe(each), " and ", describe(q));
  require(lse.numel() == q.size(0) * q.size(1) * q.size(2) && lse.scalar_type() == torch::kFloat32, where,
          "lse must be float32, [batch, heads, length]; got ", shapes({lse}), ", ", describe(lse));
  if (q.numel() == 0 || k.numel() == 0)
    return {torch::zeros_like(q), torch::zeros_like(k), torch::zeros_like(v), zeros_or_none(a.gain, q),
            zeros_or_none(a.learned_p, q)};
  if (!is_fused(q, a)) return composite_backward(d_o, q, k, v, a);
  const torch::NoGradGuard no_grad;
  return fused_op_backward(d_o, q, k, v, {by_position(o).contiguous(), lse.contiguous()}, a);
}

}  // namespace normlab
