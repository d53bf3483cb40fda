#include "nn/attention.h"

#include <cmath>

namespace normlab {
namespace {

using torch::Tensor;

constexpr int attention_site = 0, cross_site = 5;  // of dropout in a layer; block.cpp has the others

double logit_scale(LogitScale scale, int64_t d_head) {
  switch (scale) {
    case LogitScale::inverse_sqrt_d_head:
      return 1.0 / std::sqrt(static_cast<double>(d_head));
    case LogitScale::one:
      break;
  }
  return 1.0;
}

// Entries of a layer's own gain; none when it has none or the model holds it.
int64_t gain_size(GainSharing sharing, int64_t n_heads, int64_t d_head) {
  switch (sharing) {
    case GainSharing::layer:
      return 1;
    case GainSharing::head:
      return n_heads;
    case GainSharing::channel:
      return n_heads * d_head;
    case GainSharing::none:
    case GainSharing::model:
      break;
  }
  return 0;
}

}  // namespace

void KvCache::append(const Tensor& k_hat, const Tensor& v) {
  k_hat_bshd = k_hat_bshd.defined() ? torch::cat({k_hat_bshd, k_hat}, 1) : k_hat;
  v_bshd = v_bshd.defined() ? torch::cat({v_bshd, v}, 1) : v;
}

Attention::Attention(const ModelConfig& config, const NormScheme& scheme, int layer, torch::TensorOptions options,
                     AttentionKind kind)
    : kind_(kind),
      layer_(layer),
      n_heads_(config.n_heads),
      n_kv_heads_(config.n_kv_heads),
      d_head_(config.d_head),
      dropout_(config.dropout),
      scale_(logit_scale(scheme.logit_scale, config.d_head)),
      learn_gain_(scheme.learn_gain),
      fused_(config.kernels == Kernels::fused),
      qk_{.norm = scheme.qk, .p = scheme.p, .scope = scheme.scope, .order = scheme.order, .eps = scheme.qk_eps},
      out_(n_heads_ * d_head_, config.d_model, config.bias, fused_, options) {
  const auto map_to = [&](int64_t heads) {
    return Linear(config.d_model, heads * d_head_, config.bias, fused_, options);
  };
  if (kind_ == AttentionKind::self)
    qkv_ = map_to(n_heads_ + 2 * n_kv_heads_);
  else
    q_ = map_to(n_heads_), kv_ = map_to(2 * n_kv_heads_);
  const int64_t gains = gain_size(scheme.gain, n_heads_, d_head_);
  if (gains > 0)
    gain_ = torch::full({gains}, initial_gain(scheme, {config.d_head, config.n_heads, config.seq_len}), options);
  if (scheme.learn_p) {
    const double above = scheme.p - 1.0, raw = above + std::log(-std::expm1(-above));  // softplus(raw) = above
    raw_p_ = torch::full({scheme.p_sharing == PSharing::head ? n_heads_ : 1}, raw, options);
  }
}

AttentionForm Attention::form(const Tensor& model_gain, const RopeTable* rope) const {
  AttentionForm form{.fused = fused_, .qk = qk_, .gain = gain_.defined() ? gain_ : model_gain, .scale = scale_};
  form.qk.rope = rope;
  if (raw_p_.defined()) form.qk.learned_p = torch::softplus(raw_p_) + 1.0;
  return form;
}

Tensor Attention::operator()(const Tensor& x_btc, const Pass& pass, const Tensor& model_gain, const RopeTable* rope,
                             KvCache* cache) const {
  const int64_t b = x_btc.size(0), t = x_btc.size(1);
  const bool cross = kind_ == AttentionKind::cross;
  AttentionForm how = form(model_gain, rope);
  how.dropout = pass.dropout(dropout_, layer_, cross ? cross_site : attention_site, n_heads_ * t);
  how.causal = !cross && pass.causal;
  how.key_lengths_b = cross ? pass.memory->lengths_b : pass.key_lengths_b;
  if (pass.beams) return decode(x_btc, *pass.beams, how);
  if (cross) return attend_memory(x_btc, *pass.memory, how);
  const Tensor qkv = qkv_(x_btc).view({b, t, n_heads_ + 2 * n_kv_heads_, d_head_});
  how.stats = pass.layer_stats(layer_, n_heads_);

  Tensor mixed;
  if (cache) {
    const int64_t first = cache->length();
    const auto parts = qkv.split_with_sizes({n_heads_, n_kv_heads_, n_kv_heads_}, 2);
    cache->append(normalise_keys(parts[1], how, first), parts[2]);
    mixed = attend(normalise_queries(parts[0], how, first), cache->k_hat_bshd, cache->v_bshd, how);
  } else {
    mixed = attention(qkv, n_heads_, how);
  }
  return out_(mixed.reshape({b, t, n_heads_ * d_head_}));
}

void Attention::visit(const std::string& name, const ParameterVisitor& visitor) {
  if (kind_ == AttentionKind::self) {
    qkv_.visit(name + ".qkv", Role::weight, visitor);
  } else {
    q_.visit(name + ".q", Role::weight, visitor);
    kv_.visit(name + ".kv", Role::weight, visitor);
  }
  out_.visit(name + ".out", Role::residual_weight, visitor);
  if (gain_.defined() && learn_gain_) visitor(name + ".qk_gain", gain_, Role::qk_gain);
  if (raw_p_.defined()) visitor(name + ".qk_p", raw_p_, Role::qk_p);
}

void Attention::visit_linears(const LinearVisitor& visitor) const {
  if (kind_ == AttentionKind::self)
    visitor(qkv_);
  else
    visitor(q_), visitor(kv_);
  visitor(out_);
}

}  // namespace normlab
