#include "normlab/infer/import_hugging_face.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "normlab/base/error.h"
#include "normlab/base/json.h"
#include "normlab/base/text.h"

namespace normlab {
namespace {

using nlohmann::json;

// What the decoders of Hugging Face transformers have in common; the norm is the caller's.
ImportedShape hugging_face_shape(const json& c, const NormScheme& norm) {
  ImportedShape shape{.model = {}, .norm = norm, .vocab_size = size_in(c, "vocab_size")};
  shape.norm.sublayer = SublayerNorm::rms;
  shape.norm.sublayer_eps = c.at("rms_norm_eps");
  shape.model.n_layers = size_in(c, "num_hidden_layers");
  shape.model.n_heads = size_in(c, "num_attention_heads");
  shape.model.n_kv_heads = c.contains("num_key_value_heads") ? size_in(c, "num_key_value_heads") : shape.model.n_heads;
  shape.model.d_model = size_in(c, "hidden_size");
  if (c.contains("head_dim") && c["head_dim"].is_number()) shape.model.d_head = size_in(c, "head_dim");
  shape.model.d_ff = size_in(c, "intermediate_size");
  shape.model.seq_len = size_in(c, "max_position_embeddings");
  shape.model.positions = Positions::rope;
  shape.model.bias = c.value("attention_bias", false);
  shape.model.tied_head = c.value("tie_word_embeddings", false);
  require(c, "partial_rotary_factor", 1.0);
  return shape;
}

// Base and scaling of RoPE; `rope` is an entry of "rope_parameters" or of the older "rope_scaling".
void read_rope(const json& rope, double default_base, ModelConfig& model) {
  model.rope_base = rope.value("rope_theta", default_base);
  require(rope, "partial_rotary_factor", 1.0);
  const std::string type = rope.value("rope_type", rope.value("type", "default"));
  if (type == "default") return;
  if (type != "linear" && type != "llama3")
    throw DataError("rope_type", concat("got \"", type, "\"; only default, linear and llama3 can be imported."));
  model.rope_scaling = type == "linear" ? RopeScaling::linear : RopeScaling::llama3;
  model.rope_factor = rope.at("factor");
  if (type == "linear") return;
  require(rope, "low_freq_factor", 1.0);
  require(rope, "high_freq_factor", 4.0);
  model.rope_original_len = size_in(rope, "original_max_position_embeddings");
}

// The entry under "rope_parameters" or, in files of before 2026, under "rope_scaling".
json rope_entry(const json& c) {
  for (const char* key : {"rope_parameters", "rope_scaling"})
    if (c.contains(key) && c[key].is_object()) return c[key];
  return json::object();
}

ImportedShape swiglu_shape(const json& c, const NormScheme& norm) {
  require(c, "hidden_act", "silu");
  ImportedShape shape = hugging_face_shape(c, norm);
  shape.model.activation = Activation::swiglu;
  read_rope(rope_entry(c), c.value("rope_theta", 10000.0), shape.model);
  return shape;
}

ImportedShape llama_shape(const std::string& text) {
  const json c = parse_config("llama", text);
  require(c, "mlp_bias", c.value("attention_bias", false));
  return swiglu_shape(c, find_scheme("none"));
}

// RMS norm of q and k over a head with the epsilon of the other norms.
ImportedShape qwen3_shape(const std::string& text) {
  const json c = parse_config("qwen3", text);
  require(c, "attention_bias", false);
  require(c, "use_sliding_window", false);
  ImportedShape shape = swiglu_shape(c, find_scheme("rms"));
  shape.norm.qk_eps = c.at("rms_norm_eps");
  return shape;
}

// RMS norm of q and k over all heads, RMS norm after each branch.
ImportedShape olmo2_shape(const std::string& text) {
  const json c = parse_config("olmo2", text);
  require(c, "attention_bias", false);
  ImportedShape shape = swiglu_shape(c, find_scheme("olmo2"));
  shape.norm.qk_eps = c.at("rms_norm_eps");
  return shape;
}

double positive_in(const json& c, const char* key) {
  const double value = c.at(key).is_number() ? c.at(key).get<double>() : 0.0;
  if (!(value > 0.0)) throw DataError(key, concat("got ", c.at(key).dump(), ", expected a number above 0."));
  return value;
}

// A cap that a configuration may leave out or set to null.
double cap_in(const json& c, const char* key) {
  return c.contains(key) && !c[key].is_null() ? positive_in(c, key) : 0.0;
}

// Which layers have a window: all but every so many-th, as `layer_types` lists them or a pattern says.
void read_windows(const json& c, int pattern, ModelConfig& model) {
  model.window = size_in(c, "sliding_window");
  model.global_every = pattern;
  if (!c.contains("layer_types") || c["layer_types"].is_null()) return;
  std::vector<bool> global;
  for (const json& type : c["layer_types"]) global.push_back(type == "full_attention");
  const auto first = std::ranges::find(global, true);
  model.global_every = first == global.end() ? 0 : static_cast<int>(first - global.begin()) + 1;
  if (model.global_every == 1) model.window = model.global_every = 0;  // none has a window
  for (size_t layer = 0; layer < global.size(); ++layer)
    if (global.size() != static_cast<size_t>(model.n_layers) ||
        global[layer] != (window_of_layer(model, static_cast<int>(layer)) == 0))
      throw DataError("layer_types", "only every n-th layer can be without a window.");
}

// Gemma 2 and 3: gains 1 + w, norms before and after each branch, GeGLU, the embedding times sqrt(d_model), windows.
ImportedShape gemma_shape(const json& c, const NormScheme& norm, int pattern) {
  require(c, "hidden_activation", "gelu_pytorch_tanh");
  require(c, "attention_bias", false);
  if (c.contains("use_bidirectional_attention") && !c["use_bidirectional_attention"].is_null())
    require(c, "use_bidirectional_attention", false);
  ImportedShape shape = hugging_face_shape(c, norm);
  shape.model.activation = Activation::geglu;
  shape.model.d_head = size_in(c, "head_dim");
  shape.model.tied_head = c.value("tie_word_embeddings", true);
  shape.norm.placement = NormPlacement::both;
  shape.norm.embedding = EmbeddingNorm::sqrt_d;
  shape.norm.logit_scale = {Factor::Rule::number, 1.0 / std::sqrt(positive_in(c, "query_pre_attn_scalar"))};
  shape.norm.soft_cap = cap_in(c, "attn_logit_softcapping");
  shape.norm.output_soft_cap = cap_in(c, "final_logit_softcapping");
  read_windows(c, pattern, shape.model);
  return shape;
}

ImportedShape gemma2_shape(const std::string& text) {
  const json c = parse_config("gemma2", text);
  ImportedShape shape = gemma_shape(c, find_scheme("none"), 2);
  read_rope(rope_entry(c), c.value("rope_theta", 10000.0), shape.model);
  return shape;
}

// With an RMS norm of q and k, and in layers with a window a base of its own.
ImportedShape gemma3_shape(const std::string& text) {
  const json c = parse_config("gemma3_text", text);
  const int pattern = c.contains("sliding_window_pattern") ? size_in(c, "sliding_window_pattern") : 6;
  ImportedShape shape = gemma_shape(c, find_scheme("rms"), pattern);
  shape.norm.qk_eps = c.at("rms_norm_eps");
  const json rope = rope_entry(c);
  ModelConfig local;
  read_rope(rope.value("sliding_attention", json::object()), c.value("rope_local_base_freq", 10000.0), local);
  if (local.rope_scaling != RopeScaling::none)
    throw DataError("rope_parameters", "only layers without a window can have scaled positions.");
  read_rope(rope.contains("full_attention") ? rope["full_attention"] : rope, c.value("rope_theta", 1e6), shape.model);
  if (shape.model.window > 0) shape.model.rope_base_local = local.rope_base;
  return shape;
}

const NameRow before_attention{"model.layers.{i}.input_layernorm.weight", "layers.{i}.attn_norm.weight"};
const NameRow before_mlp{"model.layers.{i}.post_attention_layernorm.weight", "layers.{i}.mlp_norm.weight"};
const NameRow after_attention{"model.layers.{i}.post_attention_layernorm.weight", "layers.{i}.attn_norm.weight"};
const NameRow after_mlp{"model.layers.{i}.post_feedforward_layernorm.weight", "layers.{i}.mlp_norm.weight"};

// Names that Llama, Qwen3, OLMo 2 and Gemma share; theirs differ in the norms around the sublayers.
std::vector<NameRow> hugging_face_names(std::vector<NameRow> norms) {
  std::vector<NameRow> names = {
      {"model.embed_tokens.weight", "embedding.weight"},
      {"model.layers.{i}.self_attn.q_proj.weight", "layers.{i}.attn.qkv.weight", RowPart::q},
      {"model.layers.{i}.self_attn.k_proj.weight", "layers.{i}.attn.qkv.weight", RowPart::k},
      {"model.layers.{i}.self_attn.v_proj.weight", "layers.{i}.attn.qkv.weight", RowPart::v},
      {"model.layers.{i}.self_attn.q_proj.bias", "layers.{i}.attn.qkv.bias", RowPart::q},
      {"model.layers.{i}.self_attn.k_proj.bias", "layers.{i}.attn.qkv.bias", RowPart::k},
      {"model.layers.{i}.self_attn.v_proj.bias", "layers.{i}.attn.qkv.bias", RowPart::v},
      {"model.layers.{i}.self_attn.q_norm.weight", "layers.{i}.attn.q_norm.weight"},
      {"model.layers.{i}.self_attn.k_norm.weight", "layers.{i}.attn.k_norm.weight"},
      {"model.layers.{i}.self_attn.o_proj.weight", "layers.{i}.attn.out.weight"},
      {"model.layers.{i}.self_attn.o_proj.bias", "layers.{i}.attn.out.bias"},
      {"model.layers.{i}.mlp.up_proj.weight", "layers.{i}.mlp.in.weight", RowPart::up},
      {"model.layers.{i}.mlp.gate_proj.weight", "layers.{i}.mlp.in.weight", RowPart::gate},
      {"model.layers.{i}.mlp.up_proj.bias", "layers.{i}.mlp.in.bias", RowPart::up},
      {"model.layers.{i}.mlp.gate_proj.bias", "layers.{i}.mlp.in.bias", RowPart::gate},
      {"model.layers.{i}.mlp.down_proj.weight", "layers.{i}.mlp.out.weight"},
      {"model.layers.{i}.mlp.down_proj.bias", "layers.{i}.mlp.out.bias"},
      {"model.norm.weight", "final_norm.weight"},
      {"lm_head.weight", "head.weight"},
  };
  names.insert(names.end(), norms.begin(), norms.end());
  return names;
}

// Gemma stores gains less 1.
std::vector<NameRow> gemma_names() {
  const std::string layer = "model.layers.{i}.";
  std::vector<NameRow> names =
      hugging_face_names({before_attention,
                          {layer + "post_attention_layernorm.weight", "layers.{i}.attn_branch_norm.weight"},
                          {layer + "pre_feedforward_layernorm.weight", "layers.{i}.mlp_norm.weight"},
                          {layer + "post_feedforward_layernorm.weight", "layers.{i}.mlp_branch_norm.weight"}});
  for (NameRow& row : names) row.plus_one = row.ours.find("norm") != std::string::npos;
  return names;
}

}  // namespace

json parse_config(const std::string& source, const std::string& text) {
  const json config = parse_json(text);
  if (!config.is_object()) throw DataError(source, "the configuration is not a JSON object.");
  return config;
}

void require(const json& config, const char* key, const json& expected) {
  if (config.contains(key) && config[key] != expected)
    throw DataError(key, concat("got ", config[key].dump(), "; only ", expected.dump(), " can be imported."));
}

const std::vector<Importer>& hugging_face_importers() {
  static const std::vector<Importer> rows = {
      {"llama", hugging_face_names({before_attention, before_mlp}), llama_shape},
      {"qwen3", hugging_face_names({before_attention, before_mlp}), qwen3_shape},
      {"olmo2", hugging_face_names({after_attention, after_mlp}), olmo2_shape},
      {"gemma2", gemma_names(), gemma2_shape},
      {"gemma3_text", gemma_names(), gemma3_shape},
  };
  return rows;
}

}  // namespace normlab
