// The names of a scheme's answers, and its fields.
#include <algorithm>
#include <limits>

#include "normlab/norm/scheme.h"

namespace normlab {

template <>
std::vector<std::string> enum_names<SublayerNorm>() {
  return {"layer", "rms", "scale", "dyt", "none"};
}
template <>
std::vector<std::string> enum_names<NormPlacement>() {
  return {"pre", "post", "branch", "both"};
}
template <>
std::vector<std::string> enum_names<DepthScale>() {
  return {"1", "1/sqrt(layer)"};
}
template <>
std::vector<std::string> enum_names<EmbeddingNorm>() {
  return {"none", "fixnorm", "scaled", "sqrt_d"};
}
template <>
std::vector<std::string> enum_names<Residual>() {
  return {"add", "lerp_unit", "lerp_nu", "lerp"};
}
template <>
std::vector<std::string> enum_names<AlphaSharing>() {
  return {"channel", "layer"};
}
template <>
std::vector<std::string> enum_names<MapScale>() {
  return {"none", "s_uv", "nu"};
}
template <>
std::vector<std::string> enum_names<QkNorm>() {
  return {"none", "lp", "rms", "layer"};
}
template <>
std::vector<std::string> enum_names<QkScope>() {
  return {"head", "all_heads"};
}
template <>
std::vector<std::string> enum_names<QkOrder>() {
  return {"before_rope", "after_rope"};
}
template <>
std::vector<std::string> enum_names<QkAffine>() {
  return {"none", "shared", "own"};
}
template <>
std::vector<std::string> enum_names<GainSharing>() {
  return {"none", "model", "layer", "head", "channel"};
}
template <>
std::vector<std::string> enum_names<GainOn>() {
  return {"queries", "both"};
}
template <>
std::vector<std::string> enum_names<GainForm>() {
  return {"plain", "exp"};
}
template <>
std::vector<std::string> enum_names<PSharing>() {
  return {"layer", "head"};
}
template <>
std::vector<std::string> enum_names<RowScale>() {
  return {"1", "log(n)"};
}
template <>
std::vector<std::string> enum_names<OutputScale>() {
  return {"none", "s_z"};
}
template <>
std::vector<std::string> enum_names<Constraint>() {
  return {"none", "unit", "ball"};
}
template <>
std::vector<std::string> enum_names<ConstraintAxis>() {
  return {"embedding", "rows"};
}

namespace {

Field& list_factor(NormScheme& scheme, FieldList& list, const std::string& key, const char* doc) {
  const FactorField& field = *std::find_if(factor_fields().begin(), factor_fields().end(),
                                           [&](const FactorField& each) { return key == each.key; });
  Factor& value = scheme.*field.factor;
  return list.custom(
      field.key, doc, field.expected, [&value] { return value.text(); },
      [&value, &field](const std::string& text) {
        const auto parsed = Factor::parse(text);
        if (!parsed || !field.allows(*parsed)) return false;
        value = *parsed;
        return true;
      });
}

void list_stream(NormScheme& s, FieldList& list) {
  list.choice("sublayer", s.sublayer, "norm of the residual stream around each sublayer");
  list.choice(
          "placement", s.placement,
          "pre: norm(x) enters the branch; post: norm(x + branch); branch: x + norm(branch); both: x + norm'(branch of "
          "norm(x))")
      .read_if("norm.sublayer!=none");
  list.real("sublayer_eps", s.sublayer_eps, {.min = 0.0, .max = 1.0}, "epsilon of the sublayer norm")
      .read_if("norm.sublayer=layer|rms|scale");
  list.choice("sublayer_scale", s.sublayer_scale, "factor of the sublayer norm of layer 1, 2, ...")
      .read_if("norm.sublayer!=none and norm.placement=pre");
  list.choice(
      "embedding", s.embedding,
      "fixnorm: unit rows, times sqrt(d_model) at the input only; scaled: a learnable scale at the input; sqrt_d: "
      "that scale fixed at sqrt(d_model), as in Gemma");
  list.choice("residual", s.residual,
              "add: h + b; lerp: h + alpha (b - h); lerp_nu: that times nu(alpha); lerp_unit: between and back onto "
              "the unit sphere");
  list_factor(s, list, "alpha_init", "initial step alpha of a lerp")
      .read_if("norm.residual!=add")
      .meaning("1/n_layers", "1 over model.n_layers");
  list.choice("alpha_sharing", s.alpha_sharing, "one alpha per channel, or one per sublayer")
      .read_if("norm.residual!=add");
  list.choice("map_scale", s.map_scale,
              "s_uv: learnable scales of the hidden layer; nu: constants that keep the norms of all maps at 1");
}

void list_qk(NormScheme& s, FieldList& list) {
  list.choice("qk", s.qk, "normalisation of queries and keys");
  list.real("p", s.p, {.min = 0.0, .open_min = true, .infinite = true}, "p of the Lp norm")
      .read_if("norm.qk=lp")
      .meaning("inf", "the largest magnitude among the channels");
  list.flag("learn_p", s.learn_p, "learn p, as 1 + softplus(r); p is then the initial value").read_if("norm.qk=lp");
  list.choice("p_sharing", s.p_sharing, "one learned p per layer or per head").read_if("norm.learn_p=true");
  list.integer("qk_groups", s.qk_groups, {.min = 1, .max = 1 << 16},
               "groups of channels of a head, each with its own norm")
      .read_if("norm.qk=lp");
  list.choice("scope", s.scope, "one norm over a head, or over all heads together").read_if("norm.qk!=none");
  list.choice("order", s.order, "normalise before or after the rotation of RoPE")
      .read_if("model.positions=rope")
      // An L2 norm and one gain per head commute with the rotation.
      .read_if(
          "norm.qk=layer or norm.qk_affine!=none or norm.qk=lp and norm.p!=2 or norm.learn_p=true or norm.qk_groups>1 "
          "or norm.gain=channel");
  list.real("qk_eps", s.qk_eps, {.min = 1e-30, .max = 1.0},
            "lp: x / max(||x||_p, qk_eps); rms and layer: added to the mean square")
      .read_if("norm.qk!=none");
  list.choice("qk_affine", s.qk_affine,
              "learnable channel gains of an rms or layer norm of q and k: one vector for all heads, or one per head")
      .read_if("norm.qk=rms|layer");
}

void list_logits(NormScheme& s, FieldList& list) {
  list.choice("gain", s.gain, "sharing of the gain of the logits");
  list_factor(s, list, "gain_init", "initial gain")
      .read_if("norm.gain!=none")
      .meaning("log2(L^2-L)", "the QKNorm paper's rule; L is model.seq_len, in a translator translation.length_p975")
      .meaning("sqrt(d_head)", "the square root of model.d_head")
      .meaning("matched",
               "the gain that gives this p, at initialisation, the spread of logits that p = 2 has with log2(L^2-L); "
               "it separates the effect of p from that of the temperature");
  list.flag("learn_gain", s.learn_gain, "train the gain, or keep its initial value").read_if("norm.gain!=none");
  list.choice("gain_on", s.gain_on, "the gain multiplies the queries, or both queries and keys")
      .read_if("norm.gain!=none");
  list.choice("gain_form", s.gain_form, "exp: the gain is exp(tau) and tau is learned")
      .read_if("norm.gain!=none and norm.learn_gain=true");
  list.real("gain_max", s.gain_max, {.min = 0.0, .open_min = true, .infinite = true}, "largest gain of the form exp")
      .read_if("norm.gain!=none and norm.gain_form=exp");
  list_factor(s, list, "logit_scale", "fixed factor of the logits");
  list.choice("row_scale", s.row_scale, "log(n): the logits of a query that sees n keys are multiplied by ln n");
  list.real("soft_cap", s.soft_cap, {.min = 0.0}, "c of c tanh(S / c) on the logits of attention; 0 = none");
  list.choice("output_scale", s.output_scale, "s_z: a learnable scale per token of the vocabulary");
  list.real("output_soft_cap", s.output_soft_cap, {.min = 0.0}, "c of c tanh(z / c) on the output logits; 0 = none");
  list.real("z_loss", s.z_loss, {.min = 0.0}, "adds z_loss (ln Z)^2 to the training loss, Z = sum of exp(logits)");
}

void list_weights(NormScheme& s, FieldList& list) {
  list_factor(s, list, "stored_scale",
              "initial stored value of gain, alpha and s_z, of which init / stored_scale times as much is used")
      .read_if(
          "norm.gain!=none and norm.learn_gain=true and norm.gain_form=plain or norm.residual!=add or "
          "norm.output_scale!=none")
      .meaning("init", "the initial value itself: what is stored is what is used");
  list.choice("constraint", s.constraint, "norm of weight vectors after each step: unit = 1, ball at most 1");
  list.choice("constraint_axis", s.constraint_axis, "which vectors: those along d_model, or all rows")
      .read_if("norm.constraint!=none");
  list.real("qk_clip", s.qk_clip, {.min = 0.0},
            "after a step whose largest logit of a head is above this, its W_q and W_k are scaled down; 0 = never");
  list.flag("sigma_reparam", s.sigma_reparam, "every linear map of a block is gamma W / sigma(W), gamma learnable");
}

}  // namespace

bool FactorField::allows(const Factor& of) const {
  if (of.rule == Factor::Rule::number) return of.number > above && of.number <= most;
  return std::find(rules.begin(), rules.end(), of.rule) != rules.end();
}

const std::vector<FactorField>& factor_fields() {
  using Rule = Factor::Rule;
  constexpr double inf = std::numeric_limits<double>::infinity();
  static const std::vector<FactorField> fields = {
      {"alpha_init",
       &NormScheme::alpha_init,
       {Rule::inverse_n_layers},
       0.0,
       1.0,
       "a number above 0 to 1, or 1/n_layers"},
      {"gain_init",
       &NormScheme::gain_init,
       {Rule::log2_pairs, Rule::sqrt_d_head, Rule::matched},
       -inf,
       inf,
       "a number, log2(L^2-L), sqrt(d_head) or matched"},
      {"logit_scale",
       &NormScheme::logit_scale,
       {Rule::sqrt_d_head, Rule::inverse_sqrt_d_head, Rule::inverse_sqrt_d_model},
       0.0,
       inf,
       "a number above 0, sqrt(d_head), 1/sqrt(d_head) or 1/sqrt(d_model)"},
      {"stored_scale",
       &NormScheme::stored_scale,
       {Rule::init, Rule::inverse_sqrt_d_model},
       0.0,
       inf,
       "init, a number above 0, or 1/sqrt(d_model)"},
  };
  return fields;
}

void list_fields(NormScheme& s, FieldList& list) {
  list.section("norm");
  list.text("scheme", s.name, "row of the catalogue; the keys below override its fields (`normlab schemes`)");
  list_stream(s, list);
  list_qk(s, list);
  list_logits(s, list);
  list_weights(s, list);
}

}  // namespace normlab
