#include "normlab/nn/attention.h"

#include <cmath>
#include <numeric>

#include "normlab/nn/observer.h"
#include "normlab/nn/qk_gain.h"
#include "normlab/norm/nu.h"

namespace normlab {
namespace {

using torch::Tensor;

constexpr int attention_site = 0, cross_site = 5;  // of dropout in a layer; block.cpp has the others

// With the constants nu of the q and k maps, sqrt(d_model / d_head) each, where no norm takes them out. Those of the v
// and out maps, sqrt(d_model / d_head) and sqrt(d_head / d_model), have the product 1.
double logit_scale(const ModelConfig& config, const NormScheme& scheme) {
  const double scale = value_of(scheme.logit_scale, {config.d_head, config.d_model});
  if (scheme.map_scale != MapScale::nu || scheme.qk != QkNorm::none) return scale;
  const double nu = nu_of_map(config.d_model, config.d_head);
  return scale * nu * nu;
}

QkAffineTensors make_affine(const NormScheme& scheme, bool with_bias, int64_t heads, int64_t d_head,
                            torch::TensorOptions options) {
  if (scheme.qk_affine == QkAffine::none) return {};
  const int64_t size = scheme.qk_affine == QkAffine::own ? heads * d_head : d_head;
  return {.weight = torch::ones({size}, options),
          .bias = with_bias && scheme.qk == QkNorm::layer ? torch::zeros({size}, options) : Tensor()};
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
      learn_gain_(scheme.learn_gain),
      fused_(config.kernels == Kernels::fused),
      qk_clip_(scheme.qk_clip),
      gain_on_(scheme.gain_on),
      form_{.fused = fused_,
            .qk = {.norm = scheme.qk,
                   .p = scheme.p,
                   .scope = scheme.scope,
                   .order = scheme.order,
                   .eps = scheme.qk_eps,
                   .groups = scheme.qk_groups},
            .q_affine = make_affine(scheme, config.bias, n_heads_, d_head_, options),
            .k_affine = make_affine(scheme, config.bias, n_kv_heads_, d_head_, options),
            .scale = logit_scale(config, scheme),
            .row_scale = scheme.row_scale,
            .soft_cap = scheme.soft_cap,
            .max_logits = qk_clip_ > 0.0 ? std::make_shared<MaxLogits>(n_heads_) : nullptr},
      out_(n_heads_ * d_head_, config.d_model, config.bias, fused_, options),
      gain_(layer_gain(config, scheme, options)) {
  const auto map_to = [&](const std::vector<int64_t>& heads) {
    Linear map(config.d_model, std::accumulate(heads.begin(), heads.end(), int64_t{0}) * d_head_, config.bias, fused_,
               options);
    map.maps.clear();
    for (const int64_t each : heads) map.maps.push_back(each * d_head_);
    if (scheme.sigma_reparam) map.add_sigma();
    return map;
  };
  if (kind_ == AttentionKind::self)
    qkv_ = map_to({n_heads_, n_kv_heads_, n_kv_heads_});
  else
    q_ = map_to({n_heads_}), kv_ = map_to({n_kv_heads_, n_kv_heads_});
  if (scheme.sigma_reparam) out_.add_sigma();
  if (scheme.learn_p) {
    const double above = scheme.p - 1.0, raw = above + std::log(-std::expm1(-above));  // softplus(raw) = above
    raw_p_ = torch::full({scheme.p_sharing == PSharing::head ? n_heads_ : 1}, raw, options);
  }
}

AttentionForm Attention::form(const Tensor& model_gain, const RopeTable* rope) const {
  AttentionForm form = form_;
  form.qk.rope = rope;
  form.gain = gain_.defined() ? gain_.used() : model_gain;
  // <g o q, g o k> = <g^2 o q, k>: the keys stay as they are.
  if (gain_on_ == GainOn::both) form.gain = form.gain * form.gain;
  if (raw_p_.defined()) form.qk.learned_p = torch::softplus(raw_p_) + 1.0;
  return form;
}

Tensor Attention::operator()(const Tensor& x_btc, const Pass& pass, const Tensor& model_gain, const RopeTable* rope,
                             KvCache* cache) const {
  const int64_t b = x_btc.size(0), t = x_btc.size(1);
  const bool cross = kind_ == AttentionKind::cross;
  AttentionForm how = form(model_gain, rope);
  if (!pass.training) how.max_logits = nullptr;
  how.dropout = pass.dropout(dropout_, layer_, cross ? cross_site : attention_site, n_heads_ * t);
  how.causal = !cross && pass.causal;
  how.key_lengths_b = cross ? pass.memory->lengths_b : pass.key_lengths_b;
  if (pass.beams) return decode(x_btc, *pass.beams, how);
  if (cross) return attend_memory(x_btc, pass, how);
  const Tensor qkv = qkv_(x_btc, pass.sink).view({b, t, n_heads_ + 2 * n_kv_heads_, d_head_});
  if (pass.observer)
    how.stats = pass.observer->attention({pass.stack, layer_}, {{qkv, n_heads_, n_kv_heads_, n_kv_heads_}}, how, pass);

  Tensor mixed;
  if (cache) {
    const int64_t first = cache->length();
    const auto parts = qkv.split_with_sizes({n_heads_, n_kv_heads_, n_kv_heads_}, 2);
    cache->append(normalise_keys(parts[1], how, first), parts[2]);
    mixed = attend(normalise_queries(parts[0], how, first), cache->k_hat_bshd, cache->v_bshd, how);
  } else {
    mixed = attention(qkv, n_heads_, how);
  }
  return out_(mixed.reshape({b, t, n_heads_ * d_head_}), pass.sink);
}

void Attention::visit(const std::string& name, const ParameterVisitor& visitor) {
  if (kind_ == AttentionKind::self) {
    qkv_.visit(name + ".qkv", Role::weight, visitor);
  } else {
    q_.visit(name + ".q", Role::weight, visitor);
    kv_.visit(name + ".kv", Role::weight, visitor);
  }
  out_.visit(name + ".out", Role::residual_weight, visitor);
  for (const auto& [part, affine] : {std::pair(".q_norm", &form_.q_affine), std::pair(".k_norm", &form_.k_affine)}) {
    if (affine->weight.defined()) visitor(name + part + ".weight", affine->weight, Role::qk_gain);
    if (affine->bias.defined()) visitor(name + part + ".bias", affine->bias, Role::norm_bias);
  }
  if (gain_.defined() && learn_gain_) visitor(name + ".qk_gain", gain_.stored, Role::qk_gain);
  if (raw_p_.defined()) visitor(name + ".qk_p", raw_p_, Role::qk_p);
}

void Attention::scale_head(const Linear& map, int64_t head, double factor) const {
  map.weight.narrow(0, head * d_head_, d_head_).mul_(factor);
  if (map.bias.defined()) map.bias.narrow(0, head * d_head_, d_head_).mul_(factor);
}

void Attention::clip_logits() {
  if (qk_clip_ <= 0.0) return;
  const torch::NoGradGuard no_grad;
  for (int64_t head = 0; head < n_heads_; ++head) {
    const double largest = form_.max_logits->of(static_cast<size_t>(head));
    if (!(largest > qk_clip_)) continue;
    const double gamma = qk_clip_ / largest;
    // A key head that several queries share stays as it is, as the shared keys of Kimi K2 do.
    const bool own_keys = n_kv_heads_ == n_heads_;
    const bool self = kind_ == AttentionKind::self;
    scale_head(self ? qkv_ : q_, head, own_keys ? std::sqrt(gamma) : gamma);
    if (own_keys) scale_head(self ? qkv_ : kv_, self ? n_heads_ + head : head, std::sqrt(gamma));
  }
  form_.max_logits->reset();
}

void Attention::visit_linears(const LinearVisitor& visitor) const {
  if (kind_ == AttentionKind::self)
    visitor(qkv_);
  else
    visitor(q_), visitor(kv_);
  visitor(out_);
}

}  // namespace normlab
