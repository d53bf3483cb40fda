#include "infer/import.h"

#include <nlohmann/json.hpp>
#include <set>

#include "base/error.h"
#include "base/text.h"
#include "models/weights.h"

namespace normlab {
namespace {

using nlohmann::json;
using torch::Tensor;

json parse_config(const std::string& source, const std::string& text) {
  const json config = json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!config.is_object()) throw DataError(source, "the configuration is not a JSON object.");
  return config;
}

void require(const json& config, const char* key, const json& expected) {
  if (config.contains(key) && config[key] != expected)
    throw DataError(key, str("got ", config[key].dump(), "; only ", expected.dump(), " can be imported."));
}

// karpathy/nanoGPT model.py
ImportedShape nanogpt_shape(const std::string& text) {
  const json c = parse_config("nanogpt", text);
  ImportedShape shape{.model = {}, .norm = find_scheme("none"), .vocab_size = c.at("vocab_size")};
  shape.model.n_layers = c.at("n_layer");
  shape.model.n_heads = c.at("n_head");
  shape.model.d_model = c.at("n_embd");
  shape.model.seq_len = c.at("block_size");
  shape.model.bias = c.at("bias");
  shape.model.dropout = c.value("dropout", 0.0);
  return shape;
}

// NVIDIA/ngpt model.py; its baseline has RMSNorm with eps 1e-6, SwiGLU of width 4d, RoPE of interleaved pairs.
ImportedShape ngpt_shape(const std::string& text) {
  const json c = parse_config("ngpt", text);
  require(c, "use_nGPT", 0);
  require(c, "bias", false);
  ImportedShape shape{.model = {}, .norm = find_scheme("none"), .vocab_size = c.at("vocab_size")};
  shape.norm.sublayer = SublayerNorm::rms;
  shape.norm.sublayer_eps = 1e-6;
  shape.model.n_layers = c.at("n_layer");
  shape.model.n_heads = c.at("n_head");
  shape.model.d_model = c.at("n_embd");
  shape.model.seq_len = c.at("block_size");
  shape.model.dropout = c.value("dropout", 0.0);
  shape.model.activation = Activation::swiglu;
  shape.model.positions = Positions::rope;
  shape.model.rope_pairing = RopePairing::interleaved;
  shape.model.tied_head = false;
  return shape;
}

// Hugging Face transformers, model_type llama
ImportedShape llama_shape(const std::string& text) {
  const json c = parse_config("llama", text);
  require(c, "hidden_act", "silu");
  require(c, "mlp_bias", c.value("attention_bias", false));
  ImportedShape shape{.model = {}, .norm = find_scheme("none"), .vocab_size = c.at("vocab_size")};
  shape.norm.sublayer = SublayerNorm::rms;
  shape.norm.sublayer_eps = c.at("rms_norm_eps");
  shape.model.n_layers = c.at("num_hidden_layers");
  shape.model.n_heads = c.at("num_attention_heads");
  shape.model.n_kv_heads = c.value("num_key_value_heads", shape.model.n_heads);
  shape.model.d_model = c.at("hidden_size");
  if (c.contains("head_dim") && c["head_dim"].is_number()) shape.model.d_head = c["head_dim"];
  shape.model.d_ff = c.at("intermediate_size");
  shape.model.seq_len = c.at("max_position_embeddings");
  shape.model.activation = Activation::swiglu;
  shape.model.positions = Positions::rope;
  shape.model.bias = c.value("attention_bias", false);
  shape.model.tied_head = c.value("tie_word_embeddings", false);
  const json rope = c.value("rope_parameters", json::object());
  require(rope, "rope_type", "default");
  shape.model.rope_base = rope.value("rope_theta", c.value("rope_theta", 10000.0));
  return shape;
}

const std::vector<Importer>& importers() {
  static const std::vector<Importer> rows = {
      {"nanogpt",
       {
           {"transformer.wte.weight", "embedding.weight"},
           {"transformer.wpe.weight", "positions.weight"},
           {"transformer.h.{i}.ln_1.weight", "layers.{i}.attn_norm.weight"},
           {"transformer.h.{i}.ln_1.bias", "layers.{i}.attn_norm.bias"},
           {"transformer.h.{i}.attn.c_attn.weight", "layers.{i}.attn.qkv.weight"},
           {"transformer.h.{i}.attn.c_attn.bias", "layers.{i}.attn.qkv.bias"},
           {"transformer.h.{i}.attn.c_proj.weight", "layers.{i}.attn.out.weight"},
           {"transformer.h.{i}.attn.c_proj.bias", "layers.{i}.attn.out.bias"},
           {"transformer.h.{i}.ln_2.weight", "layers.{i}.mlp_norm.weight"},
           {"transformer.h.{i}.ln_2.bias", "layers.{i}.mlp_norm.bias"},
           {"transformer.h.{i}.mlp.c_fc.weight", "layers.{i}.mlp.in.weight"},
           {"transformer.h.{i}.mlp.c_fc.bias", "layers.{i}.mlp.in.bias"},
           {"transformer.h.{i}.mlp.c_proj.weight", "layers.{i}.mlp.out.weight"},
           {"transformer.h.{i}.mlp.c_proj.bias", "layers.{i}.mlp.out.bias"},
           {"transformer.ln_f.weight", "final_norm.weight"},
           {"transformer.ln_f.bias", "final_norm.bias"},
       },
       nanogpt_shape},
      {"ngpt",
       {
           {"transformer.wte.weight", "embedding.weight"},
           {"transformer.h.{i}.rmsnorm_att.weight", "layers.{i}.attn_norm.weight"},
           {"transformer.h.{i}.query.weight", "layers.{i}.attn.qkv.weight", RowPart::q},
           {"transformer.h.{i}.key.weight", "layers.{i}.attn.qkv.weight", RowPart::k},
           {"transformer.h.{i}.value.weight", "layers.{i}.attn.qkv.weight", RowPart::v},
           {"transformer.h.{i}.att_c_proj.weight", "layers.{i}.attn.out.weight"},
           {"transformer.h.{i}.rmsnorm_mlp.weight", "layers.{i}.mlp_norm.weight"},
           {"transformer.h.{i}.c_fc.weight", "layers.{i}.mlp.in.weight"},
           {"transformer.h.{i}.mlp_c_proj.weight", "layers.{i}.mlp.out.weight"},
           {"rmsnorm_f.weight", "final_norm.weight"},
           {"lm_head.weight", "head.weight"},
       },
       ngpt_shape},
      {"llama",
       {
           {"model.embed_tokens.weight", "embedding.weight"},
           {"model.layers.{i}.input_layernorm.weight", "layers.{i}.attn_norm.weight"},
           {"model.layers.{i}.self_attn.q_proj.weight", "layers.{i}.attn.qkv.weight", RowPart::q},
           {"model.layers.{i}.self_attn.k_proj.weight", "layers.{i}.attn.qkv.weight", RowPart::k},
           {"model.layers.{i}.self_attn.v_proj.weight", "layers.{i}.attn.qkv.weight", RowPart::v},
           {"model.layers.{i}.self_attn.q_proj.bias", "layers.{i}.attn.qkv.bias", RowPart::q},
           {"model.layers.{i}.self_attn.k_proj.bias", "layers.{i}.attn.qkv.bias", RowPart::k},
           {"model.layers.{i}.self_attn.v_proj.bias", "layers.{i}.attn.qkv.bias", RowPart::v},
           {"model.layers.{i}.self_attn.o_proj.weight", "layers.{i}.attn.out.weight"},
           {"model.layers.{i}.self_attn.o_proj.bias", "layers.{i}.attn.out.bias"},
           {"model.layers.{i}.post_attention_layernorm.weight", "layers.{i}.mlp_norm.weight"},
           {"model.layers.{i}.mlp.up_proj.weight", "layers.{i}.mlp.in.weight", RowPart::up},
           {"model.layers.{i}.mlp.gate_proj.weight", "layers.{i}.mlp.in.weight", RowPart::gate},
           {"model.layers.{i}.mlp.up_proj.bias", "layers.{i}.mlp.in.bias", RowPart::up},
           {"model.layers.{i}.mlp.gate_proj.bias", "layers.{i}.mlp.in.bias", RowPart::gate},
           {"model.layers.{i}.mlp.down_proj.weight", "layers.{i}.mlp.out.weight"},
           {"model.layers.{i}.mlp.down_proj.bias", "layers.{i}.mlp.out.bias"},
           {"model.norm.weight", "final_norm.weight"},
           {"lm_head.weight", "head.weight"},
       },
       llama_shape},
  };
  return rows;
}

// First row and number of rows of a part.
std::pair<int64_t, int64_t> rows_of(RowPart part, const ModelConfig& c, int64_t all) {
  const int64_t q = int64_t{c.n_heads} * c.d_head, kv = int64_t{c.n_kv_heads} * c.d_head;
  switch (part) {
    case RowPart::all:
      return {0, all};
    case RowPart::q:
      return {0, q};
    case RowPart::k:
      return {q, kv};
    case RowPart::v:
      return {q + kv, kv};
    case RowPart::up:
      return {0, c.d_ff};
    case RowPart::gate:
      break;
  }
  return {c.d_ff, c.d_ff};
}

}  // namespace

const Importer& find_importer(const std::string& source) {
  std::vector<std::string> known;
  for (const Importer& importer : importers()) {
    if (importer.source == source) return importer;
    known.push_back(importer.source);
  }
  throw UsageError("import", str("got source '", source, "', expected one of ", join(known, ", "), "."));
}

ImportedShape read_shape(const Importer& importer, const std::string& config_json, const std::string& kernels) {
  try {
    ImportedShape shape = importer.shape(config_json);
    FieldList list;
    list_fields(shape.model, list);
    list.at("model.kernels", "import").set(kernels);
    resolve(shape.model, shape.norm);
    return shape;
  } catch (const json::exception& error) {
    throw DataError(importer.source, str("the configuration lacks something (", error.what(), ")."));
  }
}

std::vector<NameMatch> match_names(const Importer& importer, const ImportedShape& shape, DecoderLm& model) {
  std::map<std::string, Tensor> tensors;
  for (auto& [name, tensor] : model.parameters()) tensors.emplace(name, tensor);
  std::vector<NameMatch> matches;
  for (const NameRow& row : importer.names) {
    const bool layered = row.ours.find("{i}") != std::string::npos;
    for (int layer = 0; layer < (layered ? shape.model.n_layers : 1); ++layer) {
      const auto ours = tensors.find(replace_all(row.ours, "{i}", str(layer)));
      if (ours == tensors.end()) continue;  // a bias the model does not have
      const auto [first, rows] = rows_of(row.part, model.config(), ours->second.size(0));
      matches.push_back({replace_all(row.theirs, "{i}", str(layer)), ours->first, first, rows});
    }
  }
  return matches;
}

DecoderLm import_model(const Importer& importer, const ImportedShape& shape, const SafetensorsFile& file,
                       const std::string& prefix, torch::TensorOptions options) {
  DecoderLm model(shape.model, shape.norm, shape.vocab_size, 0, options);
  std::map<std::string, Tensor> tensors;
  for (auto& [name, tensor] : model.parameters()) tensors.emplace(name, tensor);

  torch::NoGradGuard no_grad;
  std::set<std::string> used;
  for (const NameMatch& match : match_names(importer, shape, model)) {
    const Tensor theirs = load_tensor(file.at(prefix + match.theirs));
    const Tensor ours = tensors.at(match.ours).narrow(0, match.first_row, match.rows);
    if (ours.sizes() != theirs.sizes())
      throw DataError(file.path().string(), str("'", match.theirs, "' is ", c10::str(theirs.sizes()), ", expected ",
                                                c10::str(ours.sizes()), "."));
    ours.copy_(theirs);
    used.insert(prefix + match.theirs);
  }
  for (const TensorView& view : file.tensors())
    if (view.name.starts_with(prefix) && !used.contains(view.name))
      throw DataError(file.path().string(), str("tensor '", view.name, "' has no place in the model."));
  return model;
}

}  // namespace normlab
