#include "normlab/nn/attention.h"

#include <cmath>
#include <numeric>

#include "normlab/config/parameters.h"
#include "normlab/nn/observer.h"
#include "normlab/nn/qk_gain.h"

namespace normlab {
namespace {

using torch::Tensor;

QkAffineTensors make_affine(const ModelConfig& config, const NormScheme& scheme, int heads,
                            torch::TensorOptions options) {
  const int64_t size = affine_size(config, scheme, heads);
  if (size == 0) return {};
  return {.weight = torch::ones({size}, options),
          .bias = config.bias && scheme.qk == QkNorm::layer ? torch::zeros({size}, options) : Tensor()};
}

}  // namespace

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
      form_(attention_form(scheme, {config.d_head, config.d_model})),
      out_(n_heads_ * d_head_, config.d_model, config.bias, fused_, options),
      q_affine_(make_affine(config, scheme, config.n_heads, options)),
      k_affine_(make_affine(config, scheme, config.n_kv_heads, options)),
      gain_(layer_gain(config, scheme, options)) {
  const auto map_to = [&](const std::vector<int64_t>& heads) {
    Linear map(config.d_model, std::accumulate(heads.begin(), heads.end(), int64_t{0}) * d_head_, config.bias, fused_,
               options);
    map.maps.clear();
    for (const int64_t each : heads) map.maps.push_back(each * d_head_);
    if (scheme.sigma_reparam) map.add_sigma();
    return map;
  };
  if (kind_ == AttentionKind::self) form_.window = window_of_layer(config, layer);
  if (kind_ == AttentionKind::self)
    qkv_ = map_to({n_heads_, n_kv_heads_, n_kv_heads_});
  else
    q_ = map_to({n_heads_}), kv_ = map_to({n_kv_heads_, n_kv_heads_});
  if (scheme.sigma_reparam) out_.add_sigma();
  if (scheme.learn_p)
    raw_p_ = torch::full({scheme.p_sharing == PSharing::head ? n_heads_ : 1}, initial_raw_p(scheme), options);
}

AttentionCall Attention::call_of(const Pass& pass, const RopeTable* rope, int64_t t) const {
  const bool cross = kind_ == AttentionKind::cross;
  const DropoutSite site = cross ? DropoutSite::cross_attention : DropoutSite::attention;
  return {.form = form_,
          .fused = fused_,
          .rope = rope,
          .causal = !cross && pass.causal,
          .key_lengths_b = cross ? pass.memory->lengths_b : pass.key_lengths_b,
          .dropout = pass.dropout(dropout_, layer_, site, n_heads_ * t),
          .sdpa_dropout = out_.weight.is_cuda()};
}

AttentionWeights Attention::weights(const Tensor& model_gain) const {
  AttentionWeights used{
      .gain = gain_.defined() ? gain_.used() : model_gain, .q_affine = q_affine_, .k_affine = k_affine_};
  // <g o q, g o k> = <g^2 o q, k>: the keys stay as they are.
  if (gain_on_ == GainOn::both) used.gain = used.gain * used.gain;
  if (raw_p_.defined()) used.p = torch::softplus(raw_p_) + 1.0;
  return used;
}

Tensor Attention::operator()(const Tensor& x_btc, const Pass& pass, const Tensor& model_gain, const RopeTable* rope,
                             KvCache* cache) const {
  const int64_t b = x_btc.size(0), t = x_btc.size(1);
  const AttentionCall call = call_of(pass, rope, t);
  const AttentionWeights used = weights(model_gain);
  if (pass.beams) return decode(x_btc, *pass.beams, call, used);
  if (kind_ == AttentionKind::cross) return attend_memory(x_btc, pass, call, used);
  const Tensor qkv = qkv_(x_btc, pass.sink).view({b, t, n_heads_ + 2 * n_kv_heads_, d_head_});
  AttentionCounts counts{.max_logits = max_logits(pass)};
  if (pass.observer)
    counts.stats =
        pass.observer->attention({pass.stack, layer_}, {{qkv, n_heads_, n_kv_heads_, n_kv_heads_}}, call, used, pass);

  const Tensor mixed =
      cache ? cached_attention(qkv, n_heads_, call, used, *cache) : attention(qkv, n_heads_, call, used, counts);
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
  for (const auto& [part, affine] : {std::pair(".q_norm", &q_affine_), std::pair(".k_norm", &k_affine_)}) {
    if (affine->weight.defined()) visitor(name + part + ".weight", affine->weight, Role::qk_gain);
    if (affine->bias.defined()) visitor(name + part + ".bias", affine->bias, Role::norm_bias);
  }
  if (gain_.defined() && learn_gain_) visitor(name + ".qk_gain", gain_.stored, Role::qk_gain);
  if (raw_p_.defined()) visitor(name + ".qk_p", raw_p_, Role::qk_p);
}

void Attention::scale_head(Linear& map, int64_t head, double factor) {
  map.weight.narrow(0, head * d_head_, d_head_).mul_(factor);
  if (map.bias.defined()) map.bias.narrow(0, head * d_head_, d_head_).mul_(factor);
}

void Attention::clip_logits(const MaxLogits& largest_logits) {
  const torch::NoGradGuard no_grad;
  for (int64_t head = 0; head < n_heads_; ++head) {
    const double largest = largest_logits.of(static_cast<size_t>(head));
    if (!(largest > qk_clip_)) continue;
    const double gamma = qk_clip_ / largest;
    // A key head that several queries share stays as it is, as the shared keys of Kimi K2 do.
    const bool own_keys = n_kv_heads_ == n_heads_;
    const bool self = kind_ == AttentionKind::self;
    scale_head(self ? qkv_ : q_, head, own_keys ? std::sqrt(gamma) : gamma);
    if (own_keys) scale_head(self ? qkv_ : kv_, self ? n_heads_ + head : head, std::sqrt(gamma));
  }
}

void Attention::visit_linears(const LinearVisitor& visitor) const {
  if (kind_ == AttentionKind::self)
    visitor(qkv_);
  else
    visitor(q_), visitor(kv_);
  visitor(out_);
}

}  // namespace normlab
