#include "normlab/ops/attention_fused.h"

#include <ATen/Parallel.h>

#include <array>

#include "normlab/base/error.h"
#include "normlab/base/text.h"
#include "normlab/kernels/attention.h"
#include "normlab/ops/apply_fused.h"
#include "normlab/ops/first_derivative.h"
#include "normlab/ops/float_data.h"

namespace normlab {
namespace {

using torch::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// Everything of a call but the tensors with gradients, kept from forward to backward.
struct FusedCall : torch::CustomClassHolder {
  AttentionSpec spec;
  AttentionCounts counts;  // for the forward pass
  int64_t n_heads = 0, n_kv_heads = 0, batch = 0;
  int64_t gain_size = 0;       // 0, 1, n_heads or n_heads * d
  int64_t first_key_head = 0;  // in a row of keys: after the queries, or 0 where these have a tensor of their own
  int64_t first_row = 0;       // of dropout
  Tensor key_lengths;          // [b] or undefined
  Tensor cos, sin;             // of RoPE: the spec points into them
  Tensor row_scale;            // [1, t], [b, t] or undefined

  int64_t units() const { return batch * n_kv_heads; }
};

// The tensors of a call that may have gradients; undefined where absent, kv where it is part of q (self-attention).
// Affine ones are [d] for all heads or [h * d].
enum Input { q_input, kv_input, gain_input, p_input, q_weight, q_bias, k_weight, k_bias, n_inputs };
using Inputs = std::array<Tensor, n_inputs>;

const Tensor& keys_of(const Inputs& in) { return in[kv_input].defined() ? in[kv_input] : in[q_input]; }

// Self-attention has one tensor for queries, keys and values: `kv` is `q` then.
c10::intrusive_ptr<FusedCall> make_call(const Tensor& q, const Tensor& kv, int64_t n_heads, const AttentionCall& of,
                                        const AttentionWeights& weights) {
  auto call = c10::make_intrusive<FusedCall>();
  const AttentionForm& form = of.form;
  const int64_t t = q.size(1), s = kv.size(1), d = q.size(3);
  call->n_heads = n_heads;
  call->first_key_head = kv.is_same(q) ? n_heads : 0;
  call->n_kv_heads = (kv.size(2) - call->first_key_head) / 2;
  call->batch = q.size(0);
  if (of.key_lengths_b.defined()) call->key_lengths = of.key_lengths_b.contiguous();
  call->gain_size = weights.gain.defined() ? weights.gain.numel() : 0;
  call->first_row = of.dropout.first_row;
  if (of.rope) call->cos = of.rope->cos, call->sin = of.rope->sin;
  if (form.row_scale == RowScale::log_n) call->row_scale = visible_keys(t, s, of).log().to(torch::kFloat32);
  AttentionSpec& spec = call->spec;
  spec.tq = t, spec.tk = s;
  spec.d = d;
  spec.group = n_heads / call->n_kv_heads;
  spec.causal = of.causal;
  spec.scale = static_cast<float>(form.logit_scale);
  spec.soft_cap = static_cast<float>(form.soft_cap);
  spec.row_scale = data(call->row_scale);
  for (const Tensor& affine : {weights.q_affine.weight, weights.q_affine.bias})
    if (affine.defined() && affine.numel() != d) spec.q_affine_head = d;
  spec.channel_gain = call->gain_size == n_heads * d && d > 1;
  spec.k = row_transform(of, /*first_position=*/0);
  spec.q = spec.k;
  spec.dropout = static_cast<float>(of.dropout.rate);
  spec.dropout_key = of.dropout.key;
  spec.q_row = q.size(2) * d;
  spec.k_row = spec.v_row = kv.size(2) * d;
  spec.q_head = spec.o_head = d;
  spec.o_row = n_heads * d;
  return call;
}

// The tensors of unit u = (batch row, key head), with the gain expanded to all heads.
AttentionUnit unit_of(const FusedCall& call, int64_t u, const Inputs& in, const Tensor& o, const Tensor& lse) {
  const int64_t b = u / call.n_kv_heads, kv = u % call.n_kv_heads;
  const auto t = call.spec.tq, d = call.spec.d, group = call.spec.group;
  const int64_t head = kv * group;
  AttentionUnit unit;
  unit.q = data(in[q_input]) + b * t * call.spec.q_row + head * d;
  unit.k = data(keys_of(in)) + b * call.spec.tk * call.spec.k_row + (call.first_key_head + kv) * d;
  unit.v = unit.k + call.n_kv_heads * d;
  if (in[gain_input].defined())
    unit.gain = in[gain_input].const_data_ptr<float>() + head * (call.spec.channel_gain ? d : 1);
  unit.q_affine = {affine_of(in[q_weight], head, d), affine_of(in[q_bias], head, d)};
  unit.k_affine = {affine_of(in[k_weight], kv, d), affine_of(in[k_bias], kv, d)};
  unit.kv_len = call.key_lengths.defined() ? call.key_lengths.const_data_ptr<int64_t>()[b] : call.spec.tk;
  unit.dropout_row = static_cast<uint32_t>(call.first_row + (b * call.n_heads + head) * t);
  unit.o = const_cast<float*>(o.const_data_ptr<float>()) + b * t * call.spec.o_row + head * d;
  unit.lse = const_cast<float*>(lse.const_data_ptr<float>()) + (b * call.n_heads + head) * t;
  if (call.counts.stats) unit.stats = call.counts.stats + b * call.n_heads + head;
  return unit;
}

// A learned p differs from head to head, the number of visible keys from row to row of the batch; `p` holds one value
// for all or one per head.
AttentionSpec spec_of(const FusedCall& call, int64_t u, const Tensor& p) {
  AttentionSpec spec = call.spec;
  if (call.row_scale.defined() && call.row_scale.size(0) > 1) spec.row_scale += u / call.n_kv_heads * spec.tq;
  if (p.defined()) {
    const int64_t head = p.numel() == 1 ? 0 : u % call.n_kv_heads;
    spec.q.p = spec.k.p = p.const_data_ptr<float>()[head];
  }
  return spec;
}

// One buffer per thread, kept from call to call.
void* scratch(size_t bytes) {
  thread_local std::vector<std::byte> buffer;
  if (buffer.size() < bytes) buffer.resize(bytes);
  return buffer.data();
}

Tensor all_gains(const FusedCall& call, const Tensor& gain) {
  if (call.gain_size == 0) return {};
  return call.gain_size == 1 ? gain.expand({call.n_heads}).contiguous() : gain.contiguous();
}

// Partial gradients of one unit each, so that the sums over the batch have a fixed order.
Tensor partials(const Tensor& of, int64_t units, int64_t size) {
  return of.defined() ? torch::empty({units, size}, of.options()) : Tensor();
}

// From [units, entries of a unit's heads] to the shape of the tensor that `heads` heads share or own.
Tensor affine_gradient(const FusedCall& call, const Tensor& partial, const Tensor& of, int64_t heads) {
  if (!partial.defined()) return {};
  const Tensor by_head = partial.view({call.batch, heads, call.spec.d}).sum(0);
  return of.numel() == call.spec.d ? by_head.sum(0) : by_head.flatten();
}

// Sums over the batch; over the heads as well when they share one gain.
Tensor gain_gradient(const FusedCall& call, const Tensor& d_gain) {
  if (!d_gain.defined()) return {};
  const Tensor by_head = d_gain.view({call.batch, -1}).sum(0);
  return call.gain_size == 1 ? by_head.sum().view({1}) : by_head;
}

Tensor p_gradient(const FusedCall& call, const Tensor& d_p, const Tensor& p) {
  if (!d_p.defined()) return {};
  const Tensor by_head = d_p.sum(1).view({call.batch, call.n_kv_heads}).sum(0);
  return (p.numel() == 1 ? by_head.sum().view({1}) : by_head).to(p.scalar_type());
}

struct FusedAttention : torch::autograd::Function<FusedAttention> {
  using Optional = std::optional<Tensor>;

  static Tensor forward(AutogradContext* context, const Tensor& q, const Optional& kv, const Optional& gain,
                        const Optional& p, const Optional& qw, const Optional& qb, const Optional& kw,
                        const Optional& kb, const c10::intrusive_ptr<FusedCall>& call) {
    const auto flat = [](const Optional& tensor) { return tensor ? tensor->contiguous() : Tensor(); };
    const Inputs in = {q.contiguous(), flat(kv), all_gains(*call, flat(gain)), flat(p), flat(qw), flat(qb),
                       flat(kw),       flat(kb)};
    const int64_t t = call->spec.tq, d = call->spec.d, group = call->spec.group;
    const Tensor o = torch::empty({call->batch, t, call->n_heads, d}, q.options());
    const Tensor lse = torch::empty({call->batch, call->n_heads, t}, q.options());
    MaxLogits* const max_logits = call->counts.max_logits;
    at::parallel_for(0, call->units(), 1, [&](int64_t begin, int64_t end) {
      void* memory = scratch(attention_scratch_bytes(call->spec, /*backward=*/false));
      std::vector<AttentionStats> stats(static_cast<size_t>(max_logits ? group : 0));
      for (int64_t u = begin; u < end; ++u) {
        AttentionUnit unit = unit_of(*call, u, in, o, lse);
        if (max_logits && !unit.stats) unit.stats = stats.data();
        attention_forward(spec_of(*call, u, in[p_input]), unit, memory);
        for (size_t head = 0; head < stats.size(); ++head)
          max_logits->add(static_cast<size_t>(u % call->n_kv_heads * group) + head, unit.stats[head].max_logit);
      }
    });
    call->counts = {};
    if (!context) return o;
    variable_list saved(in.begin(), in.end());
    saved.insert(saved.end(), {o, lse});
    context->save_for_backward(saved);
    context->saved_data["call"] = c10::IValue::make_capsule(call);
    return o;
  }

  static variable_list backward(AutogradContext* context, const variable_list& grads) {
    require_first_derivative("attention");
    const auto saved = context->get_saved_variables();
    Inputs in;
    std::copy_n(saved.begin(), n_inputs, in.begin());
    const Tensor &q = in[q_input], &kv = keys_of(in), &p = in[p_input], &o = saved[n_inputs],
                 &lse = saved[n_inputs + 1];
    const auto call = c10::static_intrusive_pointer_cast<FusedCall>(context->saved_data["call"].toCapsule());
    const AttentionSpec& spec = call->spec;
    const Tensor d_o = grads[0].contiguous(), d_q = torch::empty_like(q),
                 d_kv = in[kv_input].defined() ? torch::empty_like(kv) : d_q;
    const int64_t units = call->units(), gains = spec.group * (spec.channel_gain ? spec.d : 1);
    const Tensor d_gain = partials(in[gain_input], units, gains),
                 d_p = p.defined() ? torch::empty({units, 2}, torch::kFloat64) : Tensor();
    const Tensor d_qw = partials(in[q_weight], units, spec.group * spec.d),
                 d_qb = partials(in[q_bias], units, spec.group * spec.d), d_kw = partials(in[k_weight], units, spec.d),
                 d_kb = partials(in[k_bias], units, spec.d);
    at::parallel_for(0, units, 1, [&](int64_t begin, int64_t end) {
      void* memory = scratch(attention_scratch_bytes(spec, /*backward=*/true));
      for (int64_t u = begin; u < end; ++u) {
        const AttentionUnit unit = unit_of(*call, u, in, o, lse);
        AttentionGrads to{.d_o = data(d_o) + (unit.o - data(o)),
                          .do_row = spec.o_row,
                          .do_head = spec.o_head,
                          .dq = mutable_data(d_q) + (unit.q - data(q)),
                          .dk = mutable_data(d_kv) + (unit.k - data(kv)),
                          .dv = mutable_data(d_kv) + (unit.v - data(kv)),
                          .dq_row = spec.q_row,
                          .dq_head = spec.q_head,
                          .dk_row = spec.k_row,
                          .dv_row = spec.v_row};
        const auto row = [u](const Tensor& partial) {
          return partial.defined() ? partial.mutable_data_ptr<float>() + u * partial.size(1) : nullptr;
        };
        to.d_gain = row(d_gain);
        to.q.gain = row(d_qw), to.q.bias = row(d_qb), to.k.gain = row(d_kw), to.k.bias = row(d_kb);
        if (d_p.defined()) to.q.p = d_p.mutable_data_ptr<double>() + 2 * u, to.k.p = to.q.p + 1;
        attention_backward(spec_of(*call, u, p), unit, to, memory);
      }
    });
    return {d_q,
            in[kv_input].defined() ? d_kv : Tensor(),
            gain_gradient(*call, d_gain),
            p_gradient(*call, d_p, p),
            affine_gradient(*call, d_qw, in[q_weight], call->n_heads),
            affine_gradient(*call, d_qb, in[q_bias], call->n_heads),
            affine_gradient(*call, d_kw, in[k_weight], call->n_kv_heads),
            affine_gradient(*call, d_kb, in[k_bias], call->n_kv_heads),
            Tensor()};
  }
};

Tensor run_fused(const Tensor& q, const Tensor& kv, int64_t n_heads, const AttentionCall& of,
                 const AttentionWeights& weights, const AttentionCounts& counts) {
  if (q.scalar_type() != torch::kFloat32 || !q.is_cpu())
    throw Error("attention", concat("the fused kernel takes float32 on the CPU; got ",
                                    c10::str(q.scalar_type(), " on ", q.device()), ". Use model.kernels=composite."));
  // The kernel multiplies by the gain after the rotation, which only a gain of whole heads lets it do.
  if (of.rope && of.form.order == QkOrder::before_rope && weights.gain.defined() && weights.gain.numel() > n_heads)
    throw Error("attention",
                "the fused kernel rotates before it applies a channel gain. Use norm.order=after_rope or "
                "model.kernels=composite.");
  const auto call = make_call(q, kv, n_heads, of, weights);
  call->counts = counts;
  return apply_fused<FusedAttention>(q, kv.is_same(q) ? std::nullopt : std::optional(kv), given(weights.gain),
                                     given(weights.p), given(weights.q_affine.weight), given(weights.q_affine.bias),
                                     given(weights.k_affine.weight), given(weights.k_affine.bias), call);
}

}  // namespace

RowTransform row_transform(const AttentionCall& call, int64_t first_position) {
  RowTransform rows{.norm = call.form.qk,
                    .p = static_cast<float>(call.form.p),
                    .eps = static_cast<float>(call.form.qk_eps),
                    .order = call.form.order};
  if (!call.rope) return rows;
  const int64_t first = first_position * call.rope->cos.size(1);
  rows.pairing = call.rope->pairing;
  rows.cos = data(call.rope->cos) + first, rows.sin = data(call.rope->sin) + first;
  return rows;
}

const float* affine_of(const Tensor& affine, int64_t head, int64_t d) {
  if (!affine.defined()) return nullptr;
  return affine.const_data_ptr<float>() + (affine.numel() == d ? 0 : head * d);
}

Tensor fused_attention(const Tensor& qkv_bthd, int64_t n_heads, const AttentionCall& call,
                       const AttentionWeights& weights, const AttentionCounts& counts) {
  return run_fused(qkv_bthd, qkv_bthd, n_heads, call, weights, counts);
}

Tensor fused_cross_attention(const Tensor& q_bthd, const Tensor& kv_bshd, const AttentionCall& call,
                             const AttentionWeights& weights, const AttentionCounts& counts) {
  return run_fused(q_bthd, kv_bshd, q_bthd.size(2), call, weights, counts);
}

}  // namespace normlab
