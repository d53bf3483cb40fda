#include "normlab/ops/attention.h"

#include <cmath>
#include <limits>

#include "normlab/base/error.h"
#include "normlab/base/text.h"
#include "normlab/ops/attention_fused.h"
#include "normlab/ops/attention_stats.h"
#include "normlab/ops/lp_norm.h"

namespace normlab {
namespace {

using torch::Tensor;

// Over the last dimension. `p` is undefined unless it is learned.
Tensor normalise_rows(const Tensor& x, const AttentionForm& form, const Tensor& p) {
  switch (form.qk) {
    case QkNorm::none:
      return x;
    case QkNorm::rms:
      return x * ((x * x).mean(-1, /*keepdim=*/true) + form.qk_eps).rsqrt();
    case QkNorm::layer: {
      const Tensor centred = x - x.mean(-1, /*keepdim=*/true);
      return centred * ((centred * centred).mean(-1, /*keepdim=*/true) + form.qk_eps).rsqrt();
    }
    case QkNorm::lp:
      break;
  }
  return p.defined() ? lp_normalize(x, p.view({-1, 1}), form.qk_eps) : lp_normalize(x, form.p, form.qk_eps);
}

Tensor normalise(const Tensor& x_bthd, const AttentionForm& form, const Tensor& p) {
  if (form.qk == QkNorm::none) return x_bthd;
  if (form.qk_groups > 1)
    return normalise_rows(x_bthd.unflatten(-1, {form.qk_groups, x_bthd.size(-1) / form.qk_groups}), form, p)
        .flatten(-2);
  const Tensor x = form.scope == QkScope::head ? x_bthd : x_bthd.flatten(2).unsqueeze(2);
  return normalise_rows(x, form, p).view_as(x_bthd);
}

// One value for all, one per head, one per channel or one for each channel of each head, to be broadcast over [h, d].
Tensor over_heads(const Tensor& gain, const Tensor& x_bthd) {
  const int64_t h = x_bthd.size(2), d = x_bthd.size(3);
  return gain.numel() == h * d ? gain.view({h, d}) : gain.view({-1, 1});
}
Tensor over_channels(const Tensor& weight, const Tensor& x_bthd) { return weight.view({-1, x_bthd.size(3)}); }

// Queries or keys: what is done to each of them before their product.
struct Side {
  const QkAffineTensors& affine;
  Tensor gain;  // undefined, or broadcastable to [h, d]
};

// The gain stands beside the norm, so a channel gain is rotated like the channels it scales.
Tensor transform(const Tensor& x_bthd, const AttentionCall& call, const Tensor& p, const Side& side,
                 int64_t first_position) {
  Tensor x = x_bthd;
  if (call.rope && call.form.order == QkOrder::after_rope) x = rotate(x, *call.rope, first_position);
  x = normalise(x, call.form, p);
  if (side.affine.weight.defined()) x = x * over_channels(side.affine.weight, x);
  if (side.affine.bias.defined()) x = x + over_channels(side.affine.bias, x);
  if (side.gain.defined()) x = x * side.gain;
  if (call.rope && call.form.order == QkOrder::before_rope) x = rotate(x, *call.rope, first_position);
  return x;
}

Tensor repeat_heads(const Tensor& x_bshd, int64_t n_heads) {
  const int64_t group = n_heads / x_bshd.size(2);
  return group == 1 ? x_bshd : x_bshd.repeat_interleave(group, 2);
}

// [b, 1, 1, s]: true where a key is padding.
Tensor padding(const Tensor& key_lengths_b, int64_t s) {
  return torch::arange(s, key_lengths_b.options()).ge(key_lengths_b.unsqueeze(1)).unsqueeze(1).unsqueeze(1);
}

void require_heads(const Tensor& qkv, int64_t n_heads, int64_t n_kv_heads) {
  if (qkv.dim() != 4 || n_kv_heads < 1 || n_heads + 2 * n_kv_heads != qkv.size(2) || n_heads % n_kv_heads != 0)
    throw Error("attention",
                concat("qkv must be [b, t, n_heads + 2 n_kv_heads, d] with n_kv_heads a divisor of n_heads = ", n_heads,
                       "; got ", c10::str(qkv.sizes()), "."));
}

void record_largest(const Tensor& logits_bhts, MaxLogits& into) {
  const Tensor largest = logits_bhts.detach().amax({0, 2, 3}).to(torch::kFloat32).contiguous();
  for (int64_t head = 0; head < largest.numel(); ++head)
    into.add(static_cast<size_t>(head), largest.const_data_ptr<float>()[head]);
}

// [b, h, t, d], with the factor of each query.
Tensor scaled_queries(const Tensor& q_hat_bthd, int64_t s, const AttentionCall& call) {
  const Tensor q = q_hat_bthd.transpose(1, 2);
  if (call.form.row_scale == RowScale::one) return q;
  const Tensor factor = visible_keys(q.size(2), s, call).log().to(q.options());
  return q * factor.unsqueeze(1).unsqueeze(-1);
}

}  // namespace

void MaxLogits::add(size_t head, float logit) noexcept {
  float known = values_[head].load();
  while (known < logit && !values_[head].compare_exchange_weak(known, logit)) {
  }
}

void MaxLogits::reset() noexcept {
  for (auto& value : values_) value.store(-std::numeric_limits<float>::infinity());
}

Tensor visible_keys(int64_t t, int64_t s, const AttentionCall& call) {
  const auto real = torch::kFloat64;
  const Tensor end = call.causal ? torch::arange(s - t + 1, s + 1, real) : torch::full({t}, double(s), real);
  const Tensor begin = call.windowed() ? (end - call.form.window).clamp_min(0.0) : torch::zeros({1}, real);
  if (!call.key_lengths_b.defined()) return (end - begin).unsqueeze(0);
  const Tensor in_text = torch::minimum(end.unsqueeze(0), call.key_lengths_b.to(torch::kCPU, real).unsqueeze(1));
  return (in_text - begin).clamp_min(1.0);
}

Tensor normalise_queries(const Tensor& q_bthd, const AttentionCall& call, const AttentionWeights& weights,
                         int64_t first_position) {
  const Tensor gain = weights.gain.defined() ? over_heads(weights.gain, q_bthd) : Tensor();
  return transform(q_bthd, call, weights.p, {weights.q_affine, gain}, first_position);
}

Tensor normalise_keys(const Tensor& k_bshd, const AttentionCall& call, const AttentionWeights& weights,
                      int64_t first_position) {
  return transform(k_bshd, call, weights.p, {weights.k_affine, {}}, first_position);
}

Tensor attend(const Tensor& q_hat_bthd, const Tensor& k_hat_bshd, const Tensor& v_bshd, const AttentionCall& call,
              MaxLogits* max_logits) {
  const int64_t n_heads = q_hat_bthd.size(2), t = q_hat_bthd.size(1), s = k_hat_bshd.size(1), window = call.form.window;
  // PyTorch's own kernel where it has our mask and our dropout; without Python it has no meta kernel.
  const bool plain =
      call.dropout.rate <= 0.0 && call.form.soft_cap <= 0.0 && !max_logits && !call.key_lengths_b.defined();
  // A token that is decoded alone needs no mask: it sees what is left of the keys.
  if (plain && call.windowed() && t == 1 && s > window)
    return attend(q_hat_bthd, k_hat_bshd.narrow(1, s - window, window), v_bshd.narrow(1, s - window, window), call);
  const Tensor v = repeat_heads(v_bshd, n_heads).transpose(1, 2);
  const bool masked = call.windowed() && window < s;
  if (plain && !masked && (!call.causal || t == s || t == 1) && !q_hat_bthd.is_meta()) {
    const Tensor k = repeat_heads(k_hat_bshd, n_heads).transpose(1, 2);
    const bool triangle = call.causal && t == s && t > 1;
    return torch::scaled_dot_product_attention(scaled_queries(q_hat_bthd, s, call), k, v, /*attn_mask=*/{},
                                               /*dropout_p=*/0.0, triangle, call.form.logit_scale)
        .transpose(1, 2);
  }
  const Tensor logits = attention_logits(q_hat_bthd, k_hat_bshd, call);
  if (max_logits && !logits.is_meta()) record_largest(logits, *max_logits);
  return torch::matmul(dropout(logits.softmax(-1), call.dropout), v).transpose(1, 2);
}

Tensor attention_logits(const Tensor& q_hat_bthd, const Tensor& k_hat_bshd, const AttentionCall& call) {
  const Tensor k = repeat_heads(k_hat_bshd, q_hat_bthd.size(2)).transpose(1, 2);
  const int64_t t = q_hat_bthd.size(1), s = k.size(2);
  Tensor logits = torch::matmul(scaled_queries(q_hat_bthd, s, call), k.transpose(2, 3)) * call.form.logit_scale;
  if (call.form.soft_cap > 0.0) logits = (logits / call.form.soft_cap).tanh() * call.form.soft_cap;
  constexpr double never = -std::numeric_limits<double>::infinity();
  if (call.causal) logits = logits + torch::full({t, s}, never, logits.options()).triu(s - t + 1);
  if (call.windowed() && call.form.window < s)
    logits = logits + torch::full({t, s}, never, logits.options()).tril(s - t - call.form.window);
  return call.key_lengths_b.defined() ? logits.masked_fill(padding(call.key_lengths_b, s), never) : logits;
}

Tensor attention(const Tensor& qkv_bthd, int64_t n_heads, const AttentionCall& call, const AttentionWeights& weights,
                 const AttentionCounts& counts) {
  const int64_t n_kv_heads = (qkv_bthd.size(2) - n_heads) / 2;
  require_heads(qkv_bthd, n_heads, n_kv_heads);
  if (call.fused) return fused_attention(qkv_bthd, n_heads, call, weights, counts);
  const auto parts = qkv_bthd.split_with_sizes({n_heads, n_kv_heads, n_kv_heads}, 2);
  const Tensor q_hat = normalise_queries(parts[0], call, weights, 0);
  const Tensor k_hat = normalise_keys(parts[1], call, weights, 0);
  if (counts.stats) count_attention(q_hat, k_hat, call, counts.stats);
  return attend(q_hat, k_hat, parts[2], call, counts.max_logits);
}

Tensor cross_attention(const Tensor& q_bthd, const Tensor& kv_bshd, const AttentionCall& call,
                       const AttentionWeights& weights, const AttentionCounts& counts) {
  if (call.fused) return fused_cross_attention(q_bthd, kv_bshd, call, weights, counts);
  const auto parts = kv_bshd.chunk(2, 2);
  const Tensor q_hat = normalise_queries(q_bthd, call, weights, 0);
  const Tensor k_hat = normalise_keys(parts[0], call, weights, 0);
  if (counts.stats) count_attention(q_hat, k_hat, call, counts.stats);
  return attend(q_hat, k_hat, parts[1], call, counts.max_logits);
}

}  // namespace normlab
