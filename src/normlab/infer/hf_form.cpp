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
  if (c.activation == Activation::swiglu) return "the activation is swiglu";
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

ordered_json rope_decoder_config(const std::string& type, const ModelConfig& c, const NormScheme& s) {
  const char* architecture = type == "llama"   ? "LlamaForCausalLM"
                             : type == "qwen3" ? "Qwen3ForCausalLM"
                                               : "Olmo2ForCausalLM";
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
                      {"rope_parameters", {{"rope_type", "default"}, {"rope_theta", c.rope_base}}}};
  if (type == "llama") out["mlp_bias"] = c.bias;
  return out;
}

}  // namespace

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
