#include "normlab/infer/hf_form.h"

#include <cmath>
#include <nlohmann/json.hpp>

#include "normlab/base/json.h"
#include "normlab/base/text.h"

namespace normlab {
namespace {

using nlohmann::ordered_json;

// What none of the architectures has; empty when there is nothing of it.
std::string beyond_all(const ModelConfig& c, const NormScheme& s) {
  if (s.residual != Residual::add) return "the residual is not an addition";
  if (s.map_scale != MapScale::none || s.sigma_reparam) return "linear maps have scales";
  if (s.embedding != EmbeddingNorm::none) return "embeddings are normalised or scaled";
  if (s.output_scale != OutputScale::none || s.output_soft_cap > 0.0) return "the output is scaled or capped";
  if (s.soft_cap > 0.0) return "logits of attention are capped";
  if (c.window > 0) return "attention has a window";
  if (s.row_scale != RowScale::one) return "logits are scaled by the number of keys";
  if (s.sublayer_scale != DepthScale::one) return "norms are scaled by depth";
  if (s.gain != GainSharing::none) return "the logits have a gain that is not part of an RMS norm of q and k";
  const double scale = value_of(s.logit_scale, {c.d_head, c.d_model});
  if (std::abs(scale * std::sqrt(double(c.d_head)) - 1.0) > 1e-6) return "the logit scale is not 1/sqrt(d_head)";
  return "";
}

std::string why_not_gpt2(const ModelConfig& c, const NormScheme& s) {
  if (c.positions != Positions::learned) return "positions are not learned";
  if (s.sublayer != SublayerNorm::layer || s.placement != NormPlacement::pre)
    return "it has no LayerNorm before branches";
  if (s.qk != QkNorm::none) return "queries and keys are normalised";
  if (is_gated(c.activation)) return "the activation is gated";
  if (c.n_kv_heads != c.n_heads || c.n_heads * c.d_head != c.d_model) return "the heads do not make up d_model";
  return "";
}

// What Llama, Qwen3 and OLMo 2 have in common.
std::string why_not_rope_decoder(const ModelConfig& c, const NormScheme& s) {
  if (c.positions != Positions::rope) return "positions are not rope";
  if (c.activation != Activation::swiglu) return "the activation is not swiglu";
  if (s.sublayer != SublayerNorm::rms) return "norms of the stream are not RMS norms";
  return "";
}

std::string why_not_qwen3(const ModelConfig& c, const NormScheme& s) {
  if (s.placement != NormPlacement::pre) return "norms do not stand before branches";
  if (s.qk != QkNorm::rms || s.qk_groups != 1 || s.scope != QkScope::head)
    return "the norm of q and k is not an RMS or l2 norm over a head";
  if (s.qk_affine == QkAffine::own) return "each head has its own gain";
  if (s.order != QkOrder::before_rope && s.qk_affine != QkAffine::none)
    return "q and k are normalised after the rotation";
  if (c.bias) return "linear maps have biases";
  return "";
}

std::string why_not_olmo2(const ModelConfig& c, const NormScheme& s) {
  if (s.placement != NormPlacement::branch) return "norms do not stand after branches";
  if (s.qk != QkNorm::rms || s.scope != QkScope::all_heads || s.qk_affine != QkAffine::own)
    return "the norm of q and k is not an RMS norm over all heads with gains";
  if (s.order != QkOrder::before_rope) return "q and k are normalised after the rotation";
  if (c.bias) return "linear maps have biases";
  return "";
}

// The fields of a section by name, as config.toml has them.
ordered_json section(const FieldList& list) {
  ordered_json out = ordered_json::object();
  for (const Field& field : list.fields()) {
    const std::string value = field.get(), name = field.key.substr(field.key.find('.') + 1);
    const nlohmann::json parsed = field.is_text ? nlohmann::json(value) : parse_json(value);
    out[name] = parsed.is_discarded() ? nlohmann::json(value) : parsed;  // "inf" is not a number of JSON
  }
  return out;
}

ordered_json gpt2_config(const ModelConfig& c, const NormScheme& s) {
  const char* names[] = {"gelu", "gelu_new", "relu"};  // in the order of Activation
  return {{"architectures", {"GPT2LMHeadModel"}},
          {"n_embd", c.d_model},
          {"n_layer", c.n_layers},
          {"n_head", c.n_heads},
          {"n_inner", c.d_ff},
          {"n_positions", c.seq_len},
          {"n_ctx", c.seq_len},
          {"activation_function", names[static_cast<int>(c.activation)]},
          {"layer_norm_epsilon", s.sublayer_eps},
          {"attn_pdrop", 0.0},
          {"embd_pdrop", 0.0},
          {"resid_pdrop", 0.0}};
}

ordered_json rope_parameters(const ModelConfig& c) {
  if (c.rope_scaling == RopeScaling::none) return {{"rope_type", "default"}, {"rope_theta", c.rope_base}};
  if (c.rope_scaling == RopeScaling::linear)
    return {{"rope_type", "linear"}, {"rope_theta", c.rope_base}, {"factor", c.rope_factor}};
  return {{"rope_type", "llama3"},   {"rope_theta", c.rope_base},
          {"factor", c.rope_factor}, {"low_freq_factor", 1.0},
          {"high_freq_factor", 4.0}, {"original_max_position_embeddings", c.rope_original_len}};
}

ordered_json rope_decoder_config(const std::string& type, const ModelConfig& c, const NormScheme& s) {
  const char* architecture = type == "llama"    ? "LlamaForCausalLM"
                             : type == "qwen3"  ? "Qwen3ForCausalLM"
                             : type == "olmo2"  ? "Olmo2ForCausalLM"
                             : type == "gemma2" ? "Gemma2ForCausalLM"
                                                : "Gemma3ForCausalLM";
  ordered_json out = {{"architectures", {architecture}},
                      {"hidden_size", c.d_model},
                      {"intermediate_size", c.d_ff},
                      {"num_hidden_layers", c.n_layers},
                      {"num_attention_heads", c.n_heads},
                      {"num_key_value_heads", c.n_kv_heads},
                      {"head_dim", c.d_head},
                      {"max_position_embeddings", c.seq_len},
                      {"hidden_act", "silu"},
                      {"rms_norm_eps", s.sublayer_eps},
                      {"attention_bias", c.bias},
                      {"rope_theta", c.rope_base},
                      {"rope_parameters", rope_parameters(c)}};
  if (type == "llama") out["mlp_bias"] = c.bias;
  return out;
}

ordered_json gemma_config(const std::string& type, const ModelConfig& c, const NormScheme& s) {
  ordered_json out = rope_decoder_config(type, c, s);
  out.erase("hidden_act");
  out["hidden_activation"] = "gelu_pytorch_tanh";
  const double scale = value_of(s.logit_scale, {c.d_head, c.d_model}), scalar = 1.0 / (scale * scale);
  if (std::abs(scalar - std::round(scalar)) < 1e-9 * scalar)
    out["query_pre_attn_scalar"] = std::llround(scalar);  // transformers wants a whole number as one
  else
    out["query_pre_attn_scalar"] = scalar;
  const auto cap = [](double value) { return value > 0.0 ? ordered_json(value) : ordered_json(nullptr); };
  out["attn_logit_softcapping"] = cap(s.soft_cap);
  out["final_logit_softcapping"] = cap(s.output_soft_cap);
  out["sliding_window"] = c.window > 0 ? c.window : c.seq_len;
  out["layer_types"] = ordered_json::array();
  for (int layer = 0; layer < c.n_layers; ++layer)
    out["layer_types"].push_back(window_of_layer(c, layer) > 0 ? "sliding_attention" : "full_attention");
  if (type == "gemma2") return out;
  const double local = c.rope_base_local > 0.0 ? c.rope_base_local : c.rope_base;
  out["rope_local_base_freq"] = local;
  out["rope_parameters"] = {{"full_attention", rope_parameters(c)},
                            {"sliding_attention", {{"rope_type", "default"}, {"rope_theta", local}}}};
  return out;
}

}  // namespace

HfForm gemma_form(const ModelConfig& c, const NormScheme& s) {
  const bool stream = s.sublayer == SublayerNorm::rms && s.placement == NormPlacement::both &&
                      s.embedding == EmbeddingNorm::sqrt_d && s.residual == Residual::add &&
                      s.map_scale == MapScale::none && !s.sigma_reparam && s.output_scale == OutputScale::none;
  const bool shape = c.positions == Positions::rope && c.activation == Activation::geglu && !c.bias;
  if (!stream || !shape || s.row_scale != RowScale::one || s.gain != GainSharing::none) return {};
  const bool rms = s.qk == QkNorm::rms && s.scope == QkScope::head && s.qk_affine != QkAffine::own &&
                   s.order == QkOrder::before_rope && s.soft_cap == 0.0;
  const char* common = "norms before and after branches, geglu, the embedding times sqrt(d_model)";
  // With its own base, layers with a window would keep the unscaled frequencies, and without one they would not.
  const bool scaled = c.rope_scaling != RopeScaling::none && c.window > 0 && c.rope_base_local == 0.0;
  if (rms && !scaled) return {"gemma3_text", concat(common, ", an RMS norm of q and k over a head")};
  if (s.qk == QkNorm::none && c.rope_base_local == 0.0) return {"gemma2", common};
  return {};
}

HfForm hf_form(const ModelConfig& c, const NormScheme& s) {
  if (const std::string reason = beyond_all(c, s); !reason.empty()) return {"normlab", reason};
  const std::string not_gpt2 = why_not_gpt2(c, s), not_rope = why_not_rope_decoder(c, s);
  if (not_gpt2.empty()) return {"gpt2", "LayerNorm, learned positions, plain attention"};
  if (!not_rope.empty()) return {"normlab", concat("not gpt2, because ", not_gpt2, "; not llama, because ", not_rope)};
  if (s.placement == NormPlacement::pre && s.qk == QkNorm::none)
    return {"llama", "RMS norms before branches, rope, swiglu, plain attention"};
  const std::string not_qwen3 = why_not_qwen3(c, s), not_olmo2 = why_not_olmo2(c, s);
  if (not_qwen3.empty()) return {"qwen3", "as llama, with an RMS norm of q and k over a head"};
  if (not_olmo2.empty()) return {"olmo2", "RMS norms after branches and of q and k over all heads"};
  return {"normlab", concat("not qwen3, because ", not_qwen3, "; not olmo2, because ", not_olmo2)};
}

ordered_json hf_config(const std::string& type, const ModelConfig& model, const NormScheme& norm, int vocab_size) {
  ordered_json out = type == "gpt2" ? gpt2_config(model, norm) : ordered_json::object();
  if (type == "normlab") {
    ModelConfig c = model;
    NormScheme s = norm;
    FieldList model_fields, norm_fields;
    list_fields(c, model_fields);
    list_fields(s, norm_fields);
    out = {{"architectures", {"NormlabForCausalLM"}},
           {"auto_map",
            {{"AutoConfig", "modeling_normlab.NormlabConfig"},
             {"AutoModelForCausalLM", "modeling_normlab.NormlabForCausalLM"}}},
           {"model", section(model_fields)},
           {"norm", section(norm_fields)},
           {"max_position_embeddings", model.seq_len}};
  } else if (type.starts_with("gemma")) {
    out = gemma_config(type, model, norm);
  } else if (type != "gpt2") {
    out = rope_decoder_config(type, model, norm);
  }
  out["model_type"] = type;
  out["vocab_size"] = vocab_size;
  out["tie_word_embeddings"] = model.tied_head;
  out["dtype"] = "float32";
  for (const char* token : {"bos_token_id", "eos_token_id", "pad_token_id"}) out[token] = nullptr;
  return out;
}

}  // namespace normlab
