#include "normlab/ops/attention_fused.h"

#include <array>

#include "normlab/base/error.h"
#include "normlab/base/text.h"
#include "normlab/ops/apply_fused.h"
#include "normlab/ops/attention_units.h"
#include "normlab/ops/first_derivative.h"
#include "normlab/ops/float_data.h"

namespace normlab {
namespace {

using torch::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// The tensors autograd knows, undefined where absent. Keys and values are one tensor, and in self-attention part of
// that of the queries: [b, t, heads of queries, keys and values, d].
enum Input { q_input, kv_input, gain_input, p_input, q_weight, q_bias, k_weight, k_bias, n_inputs };
using Inputs = std::array<Tensor, n_inputs>;

FusedInputs views_of(const Inputs& in, int64_t n_heads) {
  const bool is_self = !in[kv_input].defined();
  const Tensor& kv = in[is_self ? q_input : kv_input];
  const int64_t first = is_self ? n_heads : 0, n_kv_heads = (kv.size(2) - first) / 2;
  return {.q_bthd = in[q_input].narrow(2, 0, n_heads),
          .k_bshd = kv.narrow(2, first, n_kv_heads),
          .v_bshd = kv.narrow(2, first + n_kv_heads, n_kv_heads),
          .gain = in[gain_input],
          .p = in[p_input],
          .q_affine = {in[q_weight], in[q_bias]},
          .k_affine = {in[k_weight], in[k_bias]}};
}

struct FusedAttention : torch::autograd::Function<FusedAttention> {
  using Optional = std::optional<Tensor>;

  static Tensor forward(AutogradContext* context, const Tensor& q, const Optional& kv, const Optional& gain,
                        const Optional& p, const Optional& qw, const Optional& qb, const Optional& kw,
                        const Optional& kb, int64_t n_heads, const AttentionCall* of, const AttentionCounts* counts) {
    const auto flat = [](const Optional& tensor) { return tensor ? tensor->contiguous() : Tensor(); };
    Inputs in = {q.contiguous(), flat(kv), flat(gain), flat(p), flat(qw), flat(qb), flat(kw), flat(kb)};
    const bool shared_gain = gain && gain->numel() == 1;
    if (shared_gain) in[gain_input] = in[gain_input].expand({n_heads}).contiguous();
    const FusedInputs views = views_of(in, n_heads);
    const auto call = make_fused_call(views, *of);
    const FusedOutput out = fused_forward(*call, views, *counts);
    if (!context) return out.o_bthd;
    variable_list saved(in.begin(), in.end());
    saved.insert(saved.end(), {out.o_bthd, out.lse_bht});
    context->save_for_backward(saved);
    context->saved_data["call"] = c10::IValue::make_capsule(call);
    context->saved_data["shared_gain"] = shared_gain;
    return out.o_bthd;
  }

  static variable_list backward(AutogradContext* context, const variable_list& grads) {
    require_first_derivative("attention");
    const auto saved = context->get_saved_variables();
    Inputs in, to;
    std::copy_n(saved.begin(), n_inputs, in.begin());
    const auto call = c10::static_intrusive_pointer_cast<FusedCall>(context->saved_data["call"].toCapsule());
    for (const Input input : {q_input, kv_input})
      if (in[input].defined()) to[input] = torch::empty_like(in[input]);
    FusedInputs d = views_of(to, call->n_heads);
    fused_backward(*call, views_of(in, call->n_heads), {saved[n_inputs], saved[n_inputs + 1]}, grads[0].contiguous(),
                   d);
    if (context->saved_data["shared_gain"].toBool()) d.gain = d.gain.sum().view({1});
    return {to[q_input],       to[kv_input],    d.gain,   d.p,      d.q_affine.weight, d.q_affine.bias,
            d.k_affine.weight, d.k_affine.bias, Tensor(), Tensor(), Tensor()};
  }
};

Tensor run_fused(const Tensor& q, const std::optional<Tensor>& kv, int64_t n_heads, const AttentionCall& of,
                 const AttentionWeights& weights, const AttentionCounts& counts) {
  if (q.scalar_type() != torch::kFloat32 || !q.is_cpu())
    throw Error("attention", concat("the fused kernel takes float32 on the CPU; got ",
                                    c10::str(q.scalar_type(), " on ", q.device()), ". Use model.kernels=composite."));
  // The kernel multiplies by the gain after the rotation, which only a gain of whole heads lets it do.
  if (of.rope && of.form.order == QkOrder::before_rope && weights.gain.defined() && weights.gain.numel() > n_heads)
    throw Error("attention",
                "the fused kernel rotates before it applies a channel gain. Use norm.order=after_rope or "
                "model.kernels=composite.");
  return apply_fused<FusedAttention>(q, kv, given(weights.gain), given(weights.p), given(weights.q_affine.weight),
                                     given(weights.q_affine.bias), given(weights.k_affine.weight),
                                     given(weights.k_affine.bias), n_heads, &of, &counts);
}

}  // namespace

Tensor fused_attention(const Tensor& qkv_bthd, int64_t n_heads, const AttentionCall& call,
                       const AttentionWeights& weights, const AttentionCounts& counts) {
  return run_fused(qkv_bthd, std::nullopt, n_heads, call, weights, counts);
}

Tensor fused_cross_attention(const Tensor& q_bthd, const Tensor& kv_bshd, const AttentionCall& call,
                             const AttentionWeights& weights, const AttentionCounts& counts) {
  return run_fused(q_bthd, kv_bshd, q_bthd.size(2), call, weights, counts);
}

}  // namespace normlab
