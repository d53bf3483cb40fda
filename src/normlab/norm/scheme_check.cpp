// Invalid combinations of fields, each with the reason.
#include <cmath>

#include "normlab/base/error.h"
#include "normlab/base/text.h"
#include "normlab/norm/scheme.h"

namespace normlab {

template <>
std::vector<std::string> enum_names<NormPlacement>();  // in scheme_fields.cpp

namespace {

void refuse_if(bool invalid, const char* key, const std::string& reason) {
  if (invalid) throw UsageError(key, reason);
}

void check_stream(const NormScheme& s) {
  const bool none = s.sublayer == SublayerNorm::none;
  refuse_if(none && s.placement != NormPlacement::pre, "norm.placement",
            concat(enum_names<NormPlacement>()[static_cast<size_t>(s.placement)],
                   " places a sublayer norm, but norm.sublayer is none."));
  refuse_if(s.sublayer_scale != DepthScale::one && (none || s.placement != NormPlacement::pre), "norm.sublayer_scale",
            "it scales the norm that enters a branch. Set norm.sublayer to a norm and norm.placement=pre.");
  refuse_if(s.residual != Residual::add && !none, "norm.residual",
            "a lerp keeps the stream at norm 1, so a sublayer norm has no effect. Set norm.sublayer=none.");
  refuse_if(s.map_scale == MapScale::nu && s.constraint == Constraint::none, "norm.map_scale",
            "nu is derived for weights with unit rows. Set norm.constraint=ball or unit.");
}

void check_qk(const NormScheme& s) {
  refuse_if(s.learn_p && s.qk != QkNorm::lp, "norm.learn_p",
            "there is no p to learn without an Lp norm. Set norm.qk=lp or norm.learn_p=false.");
  refuse_if(s.learn_p && !(s.p > 1.0 && std::isfinite(s.p)), "norm.p",
            concat("a learned p is 1 + softplus(r), so it starts above 1 and finite; got ", s.p, "."));
  const bool grouped = s.qk_groups > 1;
  refuse_if(
      grouped && (s.qk != QkNorm::lp || s.scope != QkScope::head || s.learn_p), "norm.qk_groups",
      "groups split a head for an Lp norm with a fixed p. Set norm.qk=lp, norm.scope=head and norm.learn_p=false.");
  refuse_if(s.qk_affine != QkAffine::none && s.qk != QkNorm::rms && s.qk != QkNorm::layer, "norm.qk_affine",
            "channel gains of q and k belong to norm.qk=rms or layer; others have norm.gain=channel. "
            "Set norm.qk_affine=none.");
}

void check_gain(const NormScheme& s) {
  const bool none = s.gain == GainSharing::none, exp = s.gain_form == GainForm::exp;
  refuse_if(s.gain_init.rule == Factor::Rule::matched && s.qk != QkNorm::lp, "norm.gain_init",
            "matched compares Lp norms; it needs norm.qk=lp.");
  refuse_if(s.gain_on == GainOn::both && none, "norm.gain_on", "there is no gain. Set norm.gain.");
  refuse_if(exp && none, "norm.gain_form", "there is no gain. Set norm.gain, or norm.gain_form=plain.");
  refuse_if(exp && s.stored_scale.rule != Factor::Rule::init, "norm.gain_form",
            "exp has its own form of storage. Set norm.stored_scale=init.");
  refuse_if(exp && s.gain_init.rule == Factor::Rule::number && s.gain_init.number <= 0.0, "norm.gain_init",
            concat("exp(tau) is above 0; got ", s.gain_init.number, "."));
  refuse_if(!exp && std::isfinite(s.gain_max), "norm.gain_max", "only a gain of norm.gain_form=exp is clamped.");
}

void check_weights(const NormScheme& s) {
  const bool stores = (s.gain != GainSharing::none && s.learn_gain) || s.residual != Residual::add ||
                      s.output_scale != OutputScale::none;
  refuse_if(s.stored_scale.rule != Factor::Rule::init && !stores, "norm.stored_scale",
            "it is of the gain, alpha and s_z, and the scheme has none of them to learn.");
  const bool constrained = s.constraint != Constraint::none;
  refuse_if(constrained && s.embedding != EmbeddingNorm::none, "norm.embedding",
            "the constraint holds the embedding's rows already. Set norm.embedding=none.");
  refuse_if(constrained && s.sigma_reparam, "norm.sigma_reparam",
            "it takes the size out of the weights that norm.constraint bounds. Choose one of the two.");
  refuse_if(s.qk_clip > 0.0 && s.qk != QkNorm::none, "norm.qk_clip",
            "normalised queries and keys do not change with the size of W_q and W_k. Set norm.qk=none.");
  refuse_if(s.qk_clip > 0.0 && (constrained || s.sigma_reparam), "norm.qk_clip",
            "norm.constraint and norm.sigma_reparam set the size of the weights that it would scale down.");
  refuse_if(s.qk_clip > 0.0 && s.soft_cap > 0.0, "norm.qk_clip",
            "norm.soft_cap bounds the logits that it watches. Choose one of the two.");
}

}  // namespace

void check_scheme(const NormScheme& scheme) {
  for (const FactorField& field : factor_fields())
    if (const Factor& factor = scheme.*field.factor; !field.allows(factor))
      throw UsageError(concat("norm.", field.key), concat("got ", factor.text(), ", expected ", field.expected, "."));
  check_stream(scheme);
  check_qk(scheme);
  check_gain(scheme);
  check_weights(scheme);
}

std::string why_no_translator(const NormScheme& s) {
  if (s.residual != Residual::add) return "norm.residual is a lerp, which needs embeddings of norm 1";
  if (s.output_scale != OutputScale::none) return "norm.output_scale is s_z";
  if (s.z_loss > 0.0) return "norm.z_loss is above 0";
  if (s.embedding == EmbeddingNorm::sqrt_d) return "norm.embedding is sqrt_d, which a translator has in any case";
  return {};
}

}  // namespace normlab
