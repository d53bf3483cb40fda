#include "normlab/ops/attention.h"

#include "normlab/base/error.h"
#include "normlab/base/text.h"
#include "normlab/ops/attention_fused.h"
#include "normlab/ops/attention_stats.h"
#include "normlab/ops/lp_norm.h"
#include "normlab/ops/precision.h"

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
  Tensor x = widened(x_bthd);
  if (call.rope && call.form.order == QkOrder::after_rope) x = rotate(x, *call.rope, first_position);
  x = normalise(x, call.form, p);
  if (side.affine.weight.defined()) x = x * over_channels(side.affine.weight, x);
  if (side.affine.bias.defined()) x = x + over_channels(side.affine.bias, x);
  if (side.gain.defined()) x = x * side.gain;
  if (call.rope && call.form.order == QkOrder::before_rope) x = rotate(x, *call.rope, first_position);
  return x;
}

void require_heads(const Tensor& qkv, int64_t n_heads, int64_t n_kv_heads) {
  if (qkv.dim() != 4 || n_kv_heads < 1 || n_heads + 2 * n_kv_heads != qkv.size(2) || n_heads % n_kv_heads != 0)
    throw Error("attention",
                concat("qkv must be [b, t, n_heads + 2 n_kv_heads, d] with n_kv_heads a divisor of n_heads = ", n_heads,
                       "; got ", c10::str(qkv.sizes()), "."));
}

}  // namespace

Tensor normalise_queries(const Tensor& q_bthd, const AttentionCall& call, const AttentionWeights& weights,
                         int64_t first_position) {
  const Tensor gain = weights.gain.defined() ? over_heads(weights.gain, q_bthd) : Tensor();
  return transform(q_bthd, call, weights.p, {weights.q_affine, gain}, first_position);
}

Tensor normalise_keys(const Tensor& k_bshd, const AttentionCall& call, const AttentionWeights& weights,
                      int64_t first_position) {
  return transform(k_bshd, call, weights.p, {weights.k_affine, {}}, first_position);
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
