#include "ops/attention.h"

#include <limits>

#include "base/error.h"
#include "base/text.h"
#include "ops/attention_fused.h"
#include "ops/lp_norm.h"

namespace normlab {
namespace {

using torch::Tensor;

Tensor normalise(const Tensor& x_bthd, const QkTransform& how) {
  switch (how.norm) {
    case QkNorm::none:
      return x_bthd;
    case QkNorm::lp:
      break;
  }
  const Tensor x = how.scope == QkScope::head ? x_bthd : x_bthd.flatten(2).unsqueeze(2);
  const Tensor y =
      how.learned_p.defined() ? lp_normalize(x, how.learned_p.view({-1, 1}), how.eps) : lp_normalize(x, how.p, how.eps);
  return y.view_as(x_bthd);
}

// `gain` undefined, or broadcastable to [h, d]: it stands beside the norm, so a channel gain is rotated like the
// channels it scales.
Tensor transform(const Tensor& x_bthd, const QkTransform& how, const Tensor& gain, int64_t first_position) {
  Tensor x = x_bthd;
  if (how.rope && how.order == QkOrder::after_rope) x = rotate(x, *how.rope, first_position);
  x = normalise(x, how);
  if (gain.defined()) x = x * gain;
  if (how.rope && how.order == QkOrder::before_rope) x = rotate(x, *how.rope, first_position);
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
                str("qkv must be [b, t, n_heads + 2 n_kv_heads, d] with n_kv_heads a divisor of n_heads = ", n_heads,
                    "; got ", c10::str(qkv.sizes()), "."));
}

}  // namespace

Tensor normalise_queries(const Tensor& q_bthd, const AttentionForm& form, int64_t first_position) {
  const bool by_channel = form.gain.defined() && form.gain.numel() == q_bthd.size(2) * q_bthd.size(3);
  Tensor gain = form.gain;
  if (gain.defined()) gain = by_channel ? gain.view({q_bthd.size(2), q_bthd.size(3)}) : gain.view({-1, 1});
  return transform(q_bthd, form.qk, gain, first_position);
}

Tensor normalise_keys(const Tensor& k_bshd, const AttentionForm& form, int64_t first_position) {
  return transform(k_bshd, form.qk, Tensor(), first_position);
}

Tensor attend(const Tensor& q_hat_bthd, const Tensor& k_hat_bshd, const Tensor& v_bshd, const AttentionForm& form) {
  const int64_t n_heads = q_hat_bthd.size(2);
  const Tensor q = q_hat_bthd.transpose(1, 2), k = repeat_heads(k_hat_bshd, n_heads).transpose(1, 2),
               v = repeat_heads(v_bshd, n_heads).transpose(1, 2);
  const int64_t t = q.size(2), s = k.size(2);
  // PyTorch's own kernel where it has our mask and our dropout; without Python it has no meta kernel.
  if (form.dropout.rate <= 0.0 && !form.key_lengths_b.defined() && (!form.causal || t == s || t == 1) && !q.is_meta()) {
    const bool triangle = form.causal && t == s && t > 1;
    return torch::scaled_dot_product_attention(q, k, v, /*attn_mask=*/{}, /*dropout_p=*/0.0, triangle, form.scale)
        .transpose(1, 2);
  }
  Tensor logits = torch::matmul(q, k.transpose(2, 3)) * form.scale;
  if (form.causal) {
    logits = logits + torch::full({t, s}, -std::numeric_limits<double>::infinity(), q.options()).triu(s - t + 1);
  }
  if (form.key_lengths_b.defined())
    logits = logits.masked_fill(padding(form.key_lengths_b, s), -std::numeric_limits<double>::infinity());
  return torch::matmul(dropout(logits.softmax(-1), form.dropout), v).transpose(1, 2);
}

Tensor attention(const Tensor& qkv_bthd, int64_t n_heads, const AttentionForm& form) {
  const int64_t n_kv_heads = (qkv_bthd.size(2) - n_heads) / 2;
  require_heads(qkv_bthd, n_heads, n_kv_heads);
  if (form.fused) return fused_attention(qkv_bthd, n_heads, form);
  const auto parts = qkv_bthd.split_with_sizes({n_heads, n_kv_heads, n_kv_heads}, 2);
  return attend(normalise_queries(parts[0], form, 0), normalise_keys(parts[1], form, 0), parts[2], form);
}

Tensor cross_attention(const Tensor& q_bthd, const Tensor& kv_bshd, const AttentionForm& form) {
  if (form.fused) return fused_cross_attention(q_bthd, kv_bshd, form);
  const auto parts = kv_bshd.chunk(2, 2);
  return attend(normalise_queries(q_bthd, form, 0), normalise_keys(parts[0], form, 0), parts[1], form);
}

}  // namespace normlab
