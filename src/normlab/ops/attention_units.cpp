#include "normlab/ops/attention_units.h"

#include <ATen/Parallel.h>

#include "normlab/ops/float_data.h"

namespace normlab {
namespace {

using torch::Tensor;

const float* head_of(const Tensor& x_bthd, int64_t b, int64_t head) {
  return x_bthd.const_data_ptr<float>() + b * x_bthd.stride(0) + head * x_bthd.stride(2);
}
float* mutable_head_of(const Tensor& x_bthd, int64_t b, int64_t head) {
  return x_bthd.mutable_data_ptr<float>() + b * x_bthd.stride(0) + head * x_bthd.stride(2);
}

// The tensors of unit u = (batch row, key head).
AttentionUnit unit_of(const FusedCall& call, int64_t u, const FusedInputs& in, const FusedOutput& out) {
  const int64_t b = u / call.n_kv_heads, kv = u % call.n_kv_heads;
  const auto t = call.spec.tq, d = call.spec.d;
  const int64_t head = kv * call.spec.group;
  AttentionUnit unit;
  unit.q = head_of(in.q_bthd, b, head);
  unit.k = head_of(in.k_bshd, b, kv);
  unit.v = head_of(in.v_bshd, b, kv);
  if (in.gain.defined()) unit.gain = data(in.gain) + head * (call.spec.channel_gain ? d : 1);
  unit.q_affine = {affine_of(in.q_affine.weight, head, d), affine_of(in.q_affine.bias, head, d)};
  unit.k_affine = {affine_of(in.k_affine.weight, kv, d), affine_of(in.k_affine.bias, kv, d)};
  unit.kv_len = call.key_lengths.defined() ? call.key_lengths.const_data_ptr<int64_t>()[b] : call.spec.tk;
  unit.dropout_row = static_cast<uint32_t>(call.first_row + (b * call.n_heads + head) * t);
  unit.o = const_cast<float*>(head_of(out.o_bthd, b, head));
  unit.lse = const_cast<float*>(data(out.lse_bht)) + (b * call.n_heads + head) * t;
  return unit;
}

// A learned p differs from head to head, the number of visible keys from row to row of the batch.
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

Tensor p_gradient(const FusedCall& call, const Tensor& d_p, const Tensor& p) {
  if (!d_p.defined()) return {};
  const Tensor by_head = d_p.sum(1).view({call.batch, call.n_kv_heads}).sum(0);
  return (p.numel() == 1 ? by_head.sum().view({1}) : by_head).to(p.scalar_type());
}

}  // namespace

const float* affine_of(const Tensor& affine, int64_t head, int64_t d) {
  if (!affine.defined()) return nullptr;
  return affine.const_data_ptr<float>() + (affine.numel() == d ? 0 : head * d);
}

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

c10::intrusive_ptr<FusedCall> make_fused_call(const FusedInputs& in, const AttentionCall& of) {
  auto call = c10::make_intrusive<FusedCall>();
  const AttentionForm& form = of.form;
  const int64_t t = in.q_bthd.size(1), s = in.k_bshd.size(1), d = in.q_bthd.size(3);
  call->n_heads = in.q_bthd.size(2);
  call->n_kv_heads = in.k_bshd.size(2);
  call->batch = in.q_bthd.size(0);
  if (of.key_lengths_b.defined()) call->key_lengths = of.key_lengths_b.contiguous();
  call->first_row = of.dropout.first_row;
  if (of.rope) call->cos = of.rope->cos, call->sin = of.rope->sin;
  if (form.row_scale == RowScale::log_n) call->row_scale = visible_keys(t, s, of).log().to(torch::kFloat32);
  AttentionSpec& spec = call->spec;
  spec.tq = t, spec.tk = s;
  spec.d = d;
  spec.group = call->n_heads / call->n_kv_heads;
  spec.causal = of.causal;
  spec.window = of.causal ? form.window : 0;
  spec.scale = static_cast<float>(form.logit_scale);
  spec.soft_cap = static_cast<float>(form.soft_cap);
  spec.row_scale = data(call->row_scale);
  for (const Tensor& affine : {in.q_affine.weight, in.q_affine.bias})
    if (affine.defined() && affine.numel() != d) spec.q_affine_head = d;
  spec.channel_gain = in.gain.defined() && in.gain.numel() == call->n_heads * d && d > 1;
  spec.k = row_transform(of, /*first_position=*/0);
  spec.q = row_transform(of, of.causal ? s - t : 0);
  spec.dropout = static_cast<float>(of.dropout.rate);
  spec.dropout_key = of.dropout.key;
  spec.q_row = in.q_bthd.stride(1), spec.q_head = in.q_bthd.stride(2);
  spec.k_row = in.k_bshd.stride(1), spec.v_row = in.v_bshd.stride(1);
  spec.o_row = call->n_heads * d, spec.o_head = d;
  return call;
}

FusedOutput fused_forward(const FusedCall& call, const FusedInputs& in, const AttentionCounts& counts) {
  const int64_t t = call.spec.tq, group = call.spec.group;
  const auto options = torch::TensorOptions().dtype(torch::kFloat32);
  const FusedOutput out = {torch::empty({call.batch, t, call.n_heads, call.spec.d}, options),
                           torch::empty({call.batch, call.n_heads, t}, options)};
  at::parallel_for(0, call.units(), 1, [&](int64_t begin, int64_t end) {
    void* memory = scratch(attention_scratch_bytes(call.spec, /*backward=*/false));
    std::vector<AttentionStats> stats(static_cast<size_t>(counts.max_logits ? group : 0));
    for (int64_t u = begin; u < end; ++u) {
      AttentionUnit unit = unit_of(call, u, in, out);
      if (counts.stats) unit.stats = counts.stats + u * group;
      if (counts.max_logits && !unit.stats) unit.stats = stats.data();
      attention_forward(spec_of(call, u, in.p), unit, memory);
      for (size_t head = 0; head < stats.size(); ++head)
        counts.max_logits->add(static_cast<size_t>(u % call.n_kv_heads * group) + head, unit.stats[head].max_logit);
    }
  });
  return out;
}

void fused_backward(const FusedCall& call, const FusedInputs& in, const FusedOutput& out, const Tensor& d_o_bthd,
                    FusedInputs& to) {
  const AttentionSpec& spec = call.spec;
  const int64_t units = call.units(), of_queries = spec.group * spec.d;
  const Tensor d_gain = partials(in.gain, units, spec.group * (spec.channel_gain ? spec.d : 1)),
               d_p = in.p.defined() ? torch::empty({units, 2}, torch::kFloat64) : Tensor();
  const Tensor d_qw = partials(in.q_affine.weight, units, of_queries),
               d_qb = partials(in.q_affine.bias, units, of_queries), d_kw = partials(in.k_affine.weight, units, spec.d),
               d_kb = partials(in.k_affine.bias, units, spec.d);
  at::parallel_for(0, units, 1, [&](int64_t begin, int64_t end) {
    void* memory = scratch(attention_scratch_bytes(spec, /*backward=*/true));
    for (int64_t u = begin; u < end; ++u) {
      const int64_t b = u / call.n_kv_heads, kv = u % call.n_kv_heads, head = kv * spec.group;
      AttentionGrads grads{.d_o = head_of(d_o_bthd, b, head),
                           .do_row = d_o_bthd.stride(1),
                           .do_head = d_o_bthd.stride(2),
                           .dq = mutable_head_of(to.q_bthd, b, head),
                           .dk = mutable_head_of(to.k_bshd, b, kv),
                           .dv = mutable_head_of(to.v_bshd, b, kv),
                           .dq_row = to.q_bthd.stride(1),
                           .dq_head = to.q_bthd.stride(2),
                           .dk_row = to.k_bshd.stride(1),
                           .dv_row = to.v_bshd.stride(1)};
      const auto row = [u](const Tensor& partial) {
        return partial.defined() ? partial.mutable_data_ptr<float>() + u * partial.size(1) : nullptr;
      };
      grads.d_gain = row(d_gain);
      grads.q.gain = row(d_qw), grads.q.bias = row(d_qb), grads.k.gain = row(d_kw), grads.k.bias = row(d_kb);
      if (d_p.defined()) grads.q.p = d_p.mutable_data_ptr<double>() + 2 * u, grads.k.p = grads.q.p + 1;
      attention_backward(spec_of(call, u, in.p), unit_of(call, u, in, out), grads, memory);
    }
  });
  if (d_gain.defined()) to.gain = d_gain.view({call.batch, -1}).sum(0);
  to.p = p_gradient(call, d_p, in.p);
  to.q_affine = {affine_gradient(call, d_qw, in.q_affine.weight, call.n_heads),
                 affine_gradient(call, d_qb, in.q_affine.bias, call.n_heads)};
  to.k_affine = {affine_gradient(call, d_kw, in.k_affine.weight, call.n_kv_heads),
                 affine_gradient(call, d_kb, in.k_affine.bias, call.n_kv_heads)};
}

}  // namespace normlab
