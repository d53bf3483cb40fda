#include "ops/attention_fused.h"

#include <ATen/Parallel.h>
#include <torch/autograd.h>

#include "base/error.h"
#include "base/text.h"
#include "kernels/attention.h"

namespace normlab {
namespace {

using torch::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// Everything of a call but its tensors, kept from forward to backward.
struct Call : torch::CustomClassHolder {
  AttentionSpec spec;
  int64_t n_heads = 0, n_kv_heads = 0, batch = 0;
  int64_t gain_size = 0;  // 0, 1, n_heads or n_heads * d
  int64_t first_key_head = 0;  // in a row of keys: after the queries, or 0 where these have a tensor of their own
  Tensor key_lengths;          // [b] or undefined
  int64_t first_row = 0;       // of dropout
  Tensor cos, sin;        // of RoPE
  AttentionStats* stats = nullptr;

  int64_t units() const { return batch * n_kv_heads; }
};

RowTransform row_transform(const QkTransform& qk, const Call& call) {
  RowTransform transform{.eps = static_cast<float>(qk.eps)};
  if (qk.norm == QkNorm::lp) transform.norm = RowNorm::lp, transform.p = static_cast<float>(qk.p);
  if (!qk.rope) return transform;
  transform.rope = qk.order == QkOrder::after_rope ? RopeOrder::before_norm : RopeOrder::after_norm;
  transform.pairing = qk.rope->pairing;
  transform.cos = call.cos.const_data_ptr<float>();
  transform.sin = call.sin.const_data_ptr<float>();
  return transform;
}

// Self-attention has one tensor for queries, keys and values: `kv` is `q` then.
c10::intrusive_ptr<Call> make_call(const Tensor& q, const Tensor& kv, int64_t n_heads, const AttentionForm& form) {
  auto call = c10::make_intrusive<Call>();
  const int64_t t = q.size(1), d = q.size(3);
  call->n_heads = n_heads;
  call->first_key_head = kv.is_same(q) ? n_heads : 0;
  call->n_kv_heads = (kv.size(2) - call->first_key_head) / 2;
  call->batch = q.size(0);
  if (form.key_lengths_b.defined()) call->key_lengths = form.key_lengths_b.contiguous();
  call->gain_size = form.gain.defined() ? form.gain.numel() : 0;
  call->first_row = form.dropout.first_row;
  call->stats = form.stats;
  if (form.qk.rope) call->cos = form.qk.rope->cos.slice(0, 0, t), call->sin = form.qk.rope->sin.slice(0, 0, t);
  AttentionSpec& spec = call->spec;
  spec.tq = t, spec.tk = kv.size(1);
  spec.d = d;
  spec.group = n_heads / call->n_kv_heads;
  spec.causal = form.causal;
  spec.scale = static_cast<float>(form.scale);
  spec.channel_gain = call->gain_size == n_heads * d && d > 1;
  spec.q = spec.k = row_transform(form.qk, *call);
  spec.dropout = static_cast<float>(form.dropout.rate);
  spec.dropout_key = form.dropout.key;
  spec.q_row = q.size(2) * d;
  spec.k_row = spec.v_row = kv.size(2) * d;
  spec.q_head = spec.o_head = d;
  spec.o_row = n_heads * d;
  return call;
}

const float* data_or_null(const Tensor& tensor) { return tensor.defined() ? tensor.const_data_ptr<float>() : nullptr; }

struct Inputs {
  const float *q, *kv, *gain;
};

// The tensors of unit u = (batch row, key head), with the gain expanded to all heads.
AttentionUnit unit_of(const Call& call, int64_t u, const Inputs& in, float* o, float* lse) {
  const int64_t b = u / call.n_kv_heads, kv = u % call.n_kv_heads;
  const auto t = call.spec.tq, d = call.spec.d, group = call.spec.group;
  const float* keys = in.kv + b * call.spec.tk * call.spec.k_row;
  const int64_t head = kv * group;
  AttentionUnit unit;
  unit.q = in.q + b * t * call.spec.q_row + head * d;
  unit.k = keys + (call.first_key_head + kv) * d;
  unit.v = unit.k + call.n_kv_heads * d;
  if (in.gain) unit.gain = in.gain + head * (call.spec.channel_gain ? d : 1);
  unit.kv_len = call.key_lengths.defined() ? call.key_lengths.const_data_ptr<int64_t>()[b] : call.spec.tk;
  unit.dropout_row = static_cast<uint32_t>(call.first_row + (b * call.n_heads + head) * t);
  unit.o = o + b * t * call.spec.o_row + head * d;
  unit.lse = lse + (b * call.n_heads + head) * t;
  if (call.stats) unit.stats = call.stats + b * call.n_heads + head;
  return unit;
}

// A learned p differs from head to head; `p` holds one value for all or one a head.
AttentionSpec spec_of(const Call& call, int64_t u, const Tensor& p) {
  AttentionSpec spec = call.spec;
  if (p.defined()) {
    const int64_t head = p.numel() == 1 ? 0 : u % call.n_kv_heads;
    spec.q.p = spec.k.p = p.const_data_ptr<float>()[head];
  }
  return spec;
}

// One buffer a thread, kept from call to call.
void* scratch(size_t bytes) {
  thread_local std::vector<std::byte> buffer;
  if (buffer.size() < bytes) buffer.resize(bytes);
  return buffer.data();
}

Tensor all_gains(const Call& call, const Tensor& gain) {
  if (call.gain_size == 0) return {};
  return call.gain_size == 1 ? gain.expand({call.n_heads}).contiguous() : gain.contiguous();
}

struct FusedAttention : torch::autograd::Function<FusedAttention> {
  static Tensor forward(AutogradContext* context, const Tensor& q_in, const std::optional<Tensor>& kv_in,
                        const std::optional<Tensor>& gain_in, const std::optional<Tensor>& p_in,
                        const c10::intrusive_ptr<Call>& call) {
    const Tensor q = q_in.contiguous(), kv = kv_in ? kv_in->contiguous() : q;
    const Tensor gain = all_gains(*call, gain_in.value_or(Tensor()));
    const Tensor p = p_in ? p_in->contiguous() : Tensor();
    const int64_t t = call->spec.tq, d = call->spec.d;
    const Tensor o = torch::empty({call->batch, t, call->n_heads, d}, q.options());
    const Tensor lse = torch::empty({call->batch, call->n_heads, t}, q.options());
    const Inputs in{q.const_data_ptr<float>(), kv.const_data_ptr<float>(), data_or_null(gain)};
    at::parallel_for(0, call->units(), 1, [&](int64_t begin, int64_t end) {
      void* memory = scratch(attention_scratch_bytes(call->spec, /*backward=*/false));
      for (int64_t u = begin; u < end; ++u)
        attention_forward(spec_of(*call, u, p),
                          unit_of(*call, u, in, o.mutable_data_ptr<float>(), lse.mutable_data_ptr<float>()), memory);
    });
    context->save_for_backward({q, kv_in ? kv : Tensor(), gain, p, o, lse});
    context->saved_data["call"] = c10::IValue::make_capsule(call);
    return o;
  }

  static variable_list backward(AutogradContext* context, const variable_list& grads) {
    const auto saved = context->get_saved_variables();
    const Tensor &q = saved[0], &kv = saved[1].defined() ? saved[1] : q;
    const Tensor &gain = saved[2], &p = saved[3], &o = saved[4], &lse = saved[5];
    const auto call = c10::static_intrusive_pointer_cast<Call>(context->saved_data["call"].toCapsule());
    const AttentionSpec& spec = call->spec;
    const Tensor d_o = grads[0].contiguous(), d_q = torch::empty_like(q);
    const Tensor d_kv = saved[1].defined() ? torch::empty_like(kv) : d_q;
    const Inputs in{q.const_data_ptr<float>(), kv.const_data_ptr<float>(), data_or_null(gain)};
    // A row a unit, so that the sums over the batch have a fixed order.
    const int64_t gains = spec.group * (spec.channel_gain ? spec.d : 1);
    const Tensor d_gain = gain.defined() ? torch::empty({call->units(), gains}, q.options()) : Tensor();
    const Tensor d_p = p.defined() ? torch::empty({call->units(), 2}, torch::kFloat64) : Tensor();
    at::parallel_for(0, call->units(), 1, [&](int64_t begin, int64_t end) {
      void* memory = scratch(attention_scratch_bytes(spec, /*backward=*/true));
      for (int64_t u = begin; u < end; ++u) {
        const AttentionUnit unit =
            unit_of(*call, u, in, const_cast<float*>(o.const_data_ptr<float>()),
                    const_cast<float*>(lse.const_data_ptr<float>()));
        float* keys = d_kv.mutable_data_ptr<float>();
        AttentionGrads to{.d_o = d_o.const_data_ptr<float>() + (unit.o - o.const_data_ptr<float>()),
                          .do_row = spec.o_row,
                          .do_head = spec.o_head,
                          .dq = d_q.mutable_data_ptr<float>() + (unit.q - in.q),
                          .dk = keys + (unit.k - in.kv),
                          .dv = keys + (unit.v - in.kv),
                          .dq_row = spec.q_row,
                          .dq_head = spec.q_head,
                          .dk_row = spec.k_row,
                          .dv_row = spec.v_row};
        if (d_gain.defined()) to.d_gain = d_gain.mutable_data_ptr<float>() + u * gains;
        if (d_p.defined()) to.q.p = d_p.mutable_data_ptr<double>() + 2 * u, to.k.p = to.q.p + 1;
        attention_backward(spec_of(*call, u, p), unit, to, memory);
      }
    });
    return {d_q, saved[1].defined() ? d_kv : Tensor(), gain_gradient(*call, d_gain), p_gradient(*call, d_p, p),
            Tensor()};
  }

  // Sums over the batch; over the heads as well when they share one gain.
  static Tensor gain_gradient(const Call& call, const Tensor& d_gain) {
    if (!d_gain.defined()) return {};
    const Tensor by_head = d_gain.view({call.batch, -1}).sum(0);
    return call.gain_size == 1 ? by_head.sum().view({1}) : by_head;
  }

  static Tensor p_gradient(const Call& call, const Tensor& d_p, const Tensor& p) {
    if (!d_p.defined()) return {};
    const Tensor by_head = d_p.sum(1).view({call.batch, call.n_kv_heads}).sum(0);
    return (p.numel() == 1 ? by_head.sum().view({1}) : by_head).to(p.scalar_type());
  }
};

void require_float(const Tensor& x) {
  if (x.scalar_type() != torch::kFloat32 || !x.is_cpu())
    throw Error("attention",
                str("the fused kernel takes float32 on the CPU; got ", c10::str(x.scalar_type(), " on ", x.device()),
                    ". Use model.kernels=composite."));
}

// Function::apply() knows absent tensors only as empty options.
std::optional<Tensor> given(const Tensor& tensor) { return tensor.defined() ? std::optional(tensor) : std::nullopt; }

}  // namespace

Tensor fused_attention(const Tensor& qkv_bthd, int64_t n_heads, const AttentionForm& form) {
  require_float(qkv_bthd);
  return FusedAttention::apply(qkv_bthd, std::nullopt, given(form.gain), given(form.qk.learned_p),
                               make_call(qkv_bthd, qkv_bthd, n_heads, form));
}

Tensor fused_cross_attention(const Tensor& q_bthd, const Tensor& kv_bshd, const AttentionForm& form) {
  require_float(q_bthd);
  return FusedAttention::apply(q_bthd, kv_bshd, given(form.gain), given(form.qk.learned_p),
                               make_call(q_bthd, kv_bshd, q_bthd.size(2), form));
}

}  // namespace normlab
