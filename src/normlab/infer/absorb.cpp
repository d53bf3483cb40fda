#include "normlab/infer/absorb.h"

#include <cmath>
#include <map>
#include <tuple>

#include "normlab/base/error.h"
#include "normlab/base/text.h"
#include "normlab/nn/mlp_factors.h"
#include "normlab/norm/nu.h"

namespace normlab {
namespace {

using torch::Tensor;

// A model taken apart: tensors by name, in double.
class Absorption {
 public:
  explicit Absorption(DecoderLm& model) : result_{.config = model.config(), .scheme = model.scheme()} {
    for (auto& [name, tensor] : model.state()) {
      order_.push_back(name);
      tensors_[name] = tensor.detach().to(torch::kFloat64).clone();
      type_ = tensor.scalar_type();
    }
  }

  Absorbed run() {
    const torch::NoGradGuard no_grad;
    absorb_sigma();
    absorb_map_scale();
    absorb_gain();
    absorb_output();
    absorb_residual();
    absorb_norm_scale();
    drop_training_only();
    if (result_.absorbed.empty())
      throw UsageError("--absorb", concat("the scheme '", result_.scheme.name, "' has nothing that can be absorbed",
                                          result_.kept.empty() ? "" : ": " + join(result_.kept, "; "),
                                          ". Export it without --absorb."));
    for (const std::string& name : order_)
      if (tensors_.contains(name)) result_.tensors.emplace_back(name, tensors_.at(name).to(type_));
    return result_;
  }

 private:
  std::string layer(int i, const std::string& rest) const { return concat("layers.", i, ".", rest); }
  bool has(const std::string& name) const { return tensors_.contains(name); }
  Tensor& at(const std::string& name) { return tensors_.at(name); }
  Tensor take(const std::string& name) {
    Tensor tensor = at(name);
    tensors_.erase(name);
    return tensor;
  }
  void add(const std::string& name, Tensor tensor) {
    if (!has(name)) order_.push_back(name);
    tensors_[name] = std::move(tensor);
  }
  // Multiplies the outputs of a linear map; `factor` is a number or [out].
  void scale_outputs(const std::string& map, const Tensor& factor) {
    at(map + ".weight") = at(map + ".weight") * factor.view({-1, 1});
    if (has(map + ".bias")) at(map + ".bias") = at(map + ".bias") * factor;
  }
  void scale_inputs(const std::string& map, const Tensor& factor) {
    at(map + ".weight") = at(map + ".weight") * factor;
  }
  static Tensor number(double value) { return torch::full({1}, value, torch::kFloat64); }
  // To be broadcast over [h, d].
  Tensor by_head(const Tensor& gain) const {
    const int64_t h = result_.config.n_heads, d = result_.config.d_head;
    return gain.numel() == h * d ? gain.view({h, d}) : gain.view({-1, 1});
  }
  double stored_scale(double init) const {
    return value_of(result_.scheme.stored_scale, {result_.config.d_head, result_.config.d_model, init});
  }
  void absorbed(const std::string& what) { result_.absorbed.push_back(what); }
  void kept(const std::string& what) { result_.kept.push_back(what); }

  void absorb_sigma();
  void absorb_map_scale();
  void absorb_gain();
  Tensor used_gain(int i);
  void gain_to_rms(int i, const Tensor& gain, double scale);
  void absorb_output();
  void untie();
  void absorb_residual();
  void absorb_norm_scale();
  void drop_training_only();

  Absorbed result_;
  std::vector<std::string> order_;
  std::map<std::string, Tensor> tensors_;
  torch::ScalarType type_ = torch::kFloat32;
};

void Absorption::absorb_sigma() {
  if (!result_.scheme.sigma_reparam) return;
  for (int i = 0; i < result_.config.n_layers; ++i)
    for (const char* part : {"attn.qkv", "attn.out", "mlp.in", "mlp.out"}) {
      const std::string map = layer(i, part);
      Tensor& weight = at(map + ".weight");
      const Tensor sigma = (take(map + ".u") * torch::mv(weight, take(map + ".v"))).sum();
      weight = weight * (take(map + ".gamma") / sigma);
    }
  result_.scheme.sigma_reparam = false;
  absorbed("gamma / sigma(W) into every map of a block");
}

void Absorption::absorb_map_scale() {
  const ModelConfig& c = result_.config;
  const bool gated = is_gated(c.activation);
  if (result_.scheme.map_scale == MapScale::s_uv) {
    for (int i = 0; i < c.n_layers; ++i)
      scale_outputs(layer(i, "mlp.in"), take(layer(i, "mlp.s_uv")) * std::sqrt(double(c.d_model)));
    absorbed("s_uv sqrt(d_model) into the rows of the MLP's input map");
  }
  if (result_.scheme.map_scale == MapScale::nu) {
    const MlpFactors nu = mlp_factors(c);
    const Tensor gate = torch::full({c.d_ff}, nu.in * nu.argument, torch::kFloat64);
    const Tensor up = torch::full({c.d_ff}, nu.in * nu.activation * nu.out, torch::kFloat64);
    for (int i = 0; i < c.n_layers; ++i) {
      scale_outputs(layer(i, "mlp.in"), gated ? torch::cat({up, gate}) : gate);
      if (!gated) scale_outputs(layer(i, "mlp.out"), number(nu.activation * nu.out));
    }
    if (result_.scheme.qk == QkNorm::none) {
      const double root = nu_of_map(c.d_model, c.d_head);
      result_.scheme.logit_scale = {Factor::Rule::number,
                                    value_of(result_.scheme.logit_scale, {c.d_head, c.d_model}) * root * root};
    }
    absorbed("the constants nu of all maps into their weights");
  }
  result_.scheme.map_scale = MapScale::none;
}

// [1], [h] or [h * d], as the queries are multiplied by it; undefined where there is none.
Tensor Absorption::used_gain(int i) {
  const NormScheme& s = result_.scheme;
  if (s.gain == GainSharing::none) return {};
  const std::string name = s.gain == GainSharing::model ? "qk_gain" : layer(i, "attn.qk_gain");
  const double init = initial_gain(s, {result_.config.d_head, result_.config.n_heads, result_.config.seq_len});
  Tensor gain;
  if (!s.learn_gain)
    gain = number(init);
  else if (s.gain_form == GainForm::exp)
    gain = at(name).clamp_max(std::log(s.gain_max)).exp();
  else
    gain = at(name) * (init / stored_scale(init));
  if (!s.learn_gain && s.gain_form == GainForm::exp) gain = gain.clamp_max(s.gain_max);
  return s.gain_on == GainOn::both ? gain * gain : gain;
}

void Absorption::gain_to_rms(int i, const Tensor& gain, double scale) {
  const int64_t h = result_.config.n_heads, kv = result_.config.n_kv_heads, d = result_.config.d_head;
  const bool own = gain.defined() && gain.numel() > 1;
  Tensor w_q = torch::full({own ? h : 1, d}, scale / std::sqrt(double(d)), torch::kFloat64);
  if (gain.defined()) w_q = w_q * by_head(gain);
  add(layer(i, "attn.q_norm.weight"), w_q.flatten().clone());
  add(layer(i, "attn.k_norm.weight"), torch::ones({own ? kv * d : d}, torch::kFloat64));
  result_.scheme.qk_affine = own ? QkAffine::own : QkAffine::shared;
}

void Absorption::absorb_gain() {
  NormScheme& s = result_.scheme;
  const ModelConfig& c = result_.config;
  const bool l2 = s.qk == QkNorm::lp && s.p == 2.0 && !s.learn_p && s.qk_groups == 1 && s.scope == QkScope::head;
  const bool plain = s.qk == QkNorm::none && s.gain != GainSharing::none;
  if (s.gain == GainSharing::none && !l2) return;
  if (!l2 && !plain) return kept("the gain of the logits: only an l2 norm over a head equals an RMS norm with gains");
  if (plain && s.gain == GainSharing::channel && s.order == QkOrder::after_rope && c.positions == Positions::rope)
    return kept("the channel gain: it stands after the rotation, which does not commute with it");
  const double scale = value_of(s.logit_scale, {c.d_head, c.d_model});
  const Factor logit_scale = s.logit_scale;
  for (int i = 0; i < c.n_layers; ++i) {
    const Tensor gain = used_gain(i);
    if (l2) {
      gain_to_rms(i, gain, scale);
    } else {
      const Tensor rows = (by_head(gain) * torch::ones({c.n_heads, c.d_head}, torch::kFloat64)).flatten();
      const int64_t others = at(layer(i, "attn.qkv.weight")).size(0) - rows.numel();
      scale_outputs(layer(i, "attn.qkv"), torch::cat({rows, torch::ones({others}, torch::kFloat64)}));
    }
    if (has(layer(i, "attn.qk_gain"))) take(layer(i, "attn.qk_gain"));
  }
  if (has("qk_gain")) take("qk_gain");
  const NormScheme defaults;
  s.gain = defaults.gain, s.gain_init = defaults.gain_init, s.learn_gain = defaults.learn_gain;
  s.gain_on = defaults.gain_on, s.gain_form = defaults.gain_form, s.gain_max = defaults.gain_max;
  if (!l2) {
    s.logit_scale = logit_scale;
    return absorbed("the gain of the logits into the rows of W_q");
  }
  s.qk = QkNorm::rms;
  s.qk_eps = 1e-30;  // nothing but a guard against division by zero, as the l2 norm has it
  s.logit_scale = defaults.logit_scale;
  absorbed("gain and scale of the logits into the gains of an RMS norm of queries and keys");
}

void Absorption::untie() {
  if (!result_.config.tied_head) return;
  result_.config.tied_head = false;
  add("head.weight", at("embedding.weight").clone());
}

void Absorption::absorb_output() {
  if (result_.scheme.embedding == EmbeddingNorm::fixnorm) {
    untie();
    for (const char* name : {"embedding.weight", "head.weight"})
      at(name) = at(name) / at(name).norm(2, 1, /*keepdim=*/true).clamp_min(1e-12);
    at("embedding.weight") = at("embedding.weight") * std::sqrt(double(result_.config.d_model));
    result_.scheme.embedding = EmbeddingNorm::none;
    absorbed("unit rows into embedding and head");
  }
  if (result_.scheme.embedding == EmbeddingNorm::scaled) {
    untie();
    at("embedding.weight") = at("embedding.weight") * take("embedding.scale");
    result_.scheme.embedding = EmbeddingNorm::none;
    absorbed("the scale of the embedding into its rows");
  }
  if (result_.scheme.embedding == EmbeddingNorm::sqrt_d) {
    untie();
    at("embedding.weight") = at("embedding.weight") * std::sqrt(double(result_.config.d_model));
    result_.scheme.embedding = EmbeddingNorm::none;
    absorbed("sqrt(d_model) into the rows of the embedding");
  }
  if (result_.scheme.output_scale == OutputScale::s_z) {
    untie();
    scale_outputs("head", take("s_z") / stored_scale(1.0));
    result_.scheme.output_scale = OutputScale::none;
    absorbed("s_z into the rows of the head");
  }
}

// See absorb.h; D starts at one.
void Absorption::absorb_residual() {
  NormScheme& s = result_.scheme;
  if (s.residual == Residual::add) return;
  if (s.residual == Residual::lerp_unit)
    return kept("alpha: the stream is brought back to norm 1 after each step, which no weight can do");
  const double init = initial_alpha(result_.config, s);
  const double ratio = init / stored_scale(init);
  Tensor d = torch::ones({result_.config.d_model}, torch::kFloat64);
  untie();
  for (int i = 0; i < result_.config.n_layers; ++i)
    for (const auto& [reads, writes, name] :
         {std::tuple("attn.qkv", "attn.out", "alpha_attn"), std::tuple("mlp.in", "mlp.out", "alpha_mlp")}) {
      const Tensor alpha = (take(layer(i, name)) * ratio).abs().expand({result_.config.d_model});
      const Tensor nu = s.residual == Residual::lerp_nu ? (alpha * alpha + (1.0 - alpha) * (1.0 - alpha)).rsqrt()
                                                        : torch::ones_like(alpha);
      if ((1.0 - alpha).abs().min().item<double>() < 1e-6)
        throw UsageError("--absorb", concat("a channel of ", layer(i, name),
                                            " is 1, so that the stream is forgotten there: no addition does that. "
                                            "Export the model without --absorb."));
      scale_inputs(layer(i, reads), d);
      d = d * (1.0 - alpha) * nu;
      scale_outputs(layer(i, writes), alpha * nu / d);
    }
  scale_inputs("head", d);
  s.residual = Residual::add;
  absorbed("alpha and nu(alpha) into the maps around the stream: the residual is an addition");
}

void Absorption::absorb_norm_scale() {
  if (result_.scheme.sublayer_scale == DepthScale::one) return;
  for (int i = 0; i < result_.config.n_layers; ++i)
    for (const char* part : {"attn_norm.weight", "attn_norm.bias", "mlp_norm.weight", "mlp_norm.bias"})
      if (has(layer(i, part))) at(layer(i, part)) = at(layer(i, part)) / std::sqrt(i + 1.0);
  result_.scheme.sublayer_scale = DepthScale::one;
  absorbed("1/sqrt(layer) into the gains of the sublayer norms");
}

// What has no effect after training, and what absorbed weights no longer obey.
void Absorption::drop_training_only() {
  NormScheme& s = result_.scheme;
  const NormScheme defaults;
  s.constraint = defaults.constraint, s.constraint_axis = defaults.constraint_axis;
  s.qk_clip = defaults.qk_clip, s.z_loss = defaults.z_loss;
  const bool stores = s.gain != GainSharing::none || s.residual != Residual::add;
  if (!stores) s.stored_scale = defaults.stored_scale;
}

}  // namespace

Absorbed absorb(DecoderLm& model) { return Absorption(model).run(); }

DecoderLm absorbed_model(const Absorbed& absorbed, int vocab_size, torch::TensorOptions options) {
  check_scheme(absorbed.scheme);
  ModelConfig config = absorbed.config;
  config.kernels = Kernels::best;
  resolve_model(config, absorbed.scheme);
  DecoderLm model(config, absorbed.scheme, vocab_size, 0, options);
  std::map<std::string, Tensor> tensors(absorbed.tensors.begin(), absorbed.tensors.end());
  const torch::NoGradGuard no_grad;
  for (auto& [name, tensor] : model.state()) {
    const auto found = tensors.find(name);
    if (found == tensors.end()) throw Error("--absorb", concat("the absorbed model lacks ", name, "."));
    tensor.copy_(found->second);
  }
  return model;
}

}  // namespace normlab
