// The other implementations: their configurations in our terms, and their names for our tensors.
#include <nlohmann/json.hpp>

#include "normlab/base/error.h"
#include "normlab/base/text.h"
#include "normlab/infer/import_hugging_face.h"
#include "normlab/infer/import_translation.h"

namespace normlab {
namespace {

using nlohmann::json;

// karpathy/nanoGPT model.py
ImportedShape nanogpt_shape(const std::string& text) {
  const json c = parse_config("nanogpt", text);
  ImportedShape shape{.model = {}, .norm = find_scheme("none"), .vocab_size = size_in(c, "vocab_size")};
  shape.model.n_layers = size_in(c, "n_layer");
  shape.model.n_heads = size_in(c, "n_head");
  shape.model.d_model = size_in(c, "n_embd");
  shape.model.seq_len = size_in(c, "block_size");
  shape.model.bias = c.at("bias");
  shape.model.dropout = c.value("dropout", 0.0);
  return shape;
}

// NVIDIA/ngpt model.py with use_nGPT 1, or its baseline, which has RMSNorm with eps 1e-6; both have SwiGLU of width 4d
// and RoPE of interleaved pairs.
ImportedShape ngpt_shape(const std::string& text) {
  const json c = parse_config("ngpt", text);
  require(c, "bias", false);
  const bool baseline = c.value("use_nGPT", 0) == 0;
  if (!baseline) require(c, "use_nGPT", 1);
  ImportedShape shape{
      .model = {}, .norm = find_scheme(baseline ? "none" : "ngpt"), .vocab_size = size_in(c, "vocab_size")};
  if (baseline) {
    shape.norm.sublayer = SublayerNorm::rms;
    shape.norm.sublayer_eps = 1e-6;
  } else {
    shape.norm.stored_scale = {Factor::Rule::number, c.at("base_scale").get<double>()};
  }
  shape.model.n_layers = size_in(c, "n_layer");
  shape.model.n_heads = size_in(c, "n_head");
  shape.model.d_model = size_in(c, "n_embd");
  shape.model.seq_len = size_in(c, "block_size");
  shape.model.dropout = c.value("dropout", 0.0);
  shape.model.activation = Activation::swiglu;
  shape.model.positions = Positions::rope;
  shape.model.rope_pairing = RopePairing::interleaved;
  shape.model.tied_head = false;
  return shape;
}

// GPT-2 of Hugging Face transformers: LayerNorm with biases, learned positions, weights of linear maps as [in, out].
ImportedShape gpt2_shape(const std::string& text) {
  const json c = parse_config("gpt2", text);
  require(c, "scale_attn_weights", true);
  require(c, "scale_attn_by_inverse_layer_idx", false);
  require(c, "add_cross_attention", false);
  ImportedShape shape{.model = {}, .norm = find_scheme("none"), .vocab_size = size_in(c, "vocab_size")};
  const std::string activation = c.value("activation_function", "gelu_new");
  if (activation == "gelu_new" || activation == "gelu_pytorch_tanh")
    shape.model.activation = Activation::gelu_tanh;
  else if (activation == "gelu" || activation == "relu")
    shape.model.activation = activation == "gelu" ? Activation::gelu : Activation::relu;
  else
    throw DataError("activation_function",
                    concat("got '", activation, "'; only gelu_new, gelu_pytorch_tanh, gelu and relu can be imported."));
  shape.norm.sublayer_eps = c.value("layer_norm_epsilon", 1e-5);
  shape.model.n_layers = size_in(c, "n_layer");
  shape.model.n_heads = size_in(c, "n_head");
  shape.model.d_model = size_in(c, "n_embd");
  if (c.contains("n_inner") && !c["n_inner"].is_null()) shape.model.d_ff = size_in(c, "n_inner");
  shape.model.seq_len = size_in(c, "n_positions");
  shape.model.bias = true;
  shape.model.tied_head = c.value("tie_word_embeddings", true);
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
           {"transformer.h.{i}.attn_alpha", "layers.{i}.alpha_attn"},
           {"transformer.h.{i}.mlp_alpha", "layers.{i}.alpha_mlp"},
           {"transformer.h.{i}.sqk", "layers.{i}.attn.qk_gain"},
           {"transformer.h.{i}.suv", "layers.{i}.mlp.s_uv"},
           {"sz", "s_z"},
       },
       ngpt_shape},
      {"gpt2",
       {
           {"transformer.wte.weight", "embedding.weight"},
           {"transformer.wpe.weight", "positions.weight"},
           {"transformer.h.{i}.ln_1.weight", "layers.{i}.attn_norm.weight"},
           {"transformer.h.{i}.ln_1.bias", "layers.{i}.attn_norm.bias"},
           {"transformer.h.{i}.attn.c_attn.weight", "layers.{i}.attn.qkv.weight", RowPart::all, true},
           {"transformer.h.{i}.attn.c_attn.bias", "layers.{i}.attn.qkv.bias"},
           {"transformer.h.{i}.attn.c_proj.weight", "layers.{i}.attn.out.weight", RowPart::all, true},
           {"transformer.h.{i}.attn.c_proj.bias", "layers.{i}.attn.out.bias"},
           {"transformer.h.{i}.ln_2.weight", "layers.{i}.mlp_norm.weight"},
           {"transformer.h.{i}.ln_2.bias", "layers.{i}.mlp_norm.bias"},
           {"transformer.h.{i}.mlp.c_fc.weight", "layers.{i}.mlp.in.weight", RowPart::all, true},
           {"transformer.h.{i}.mlp.c_fc.bias", "layers.{i}.mlp.in.bias"},
           {"transformer.h.{i}.mlp.c_proj.weight", "layers.{i}.mlp.out.weight", RowPart::all, true},
           {"transformer.h.{i}.mlp.c_proj.bias", "layers.{i}.mlp.out.bias"},
           {"transformer.ln_f.weight", "final_norm.weight"},
           {"transformer.ln_f.bias", "final_norm.bias"},
           {"lm_head.weight", "head.weight"},
       },
       gpt2_shape},
  };
  static const std::vector<Importer> all = [] {
    std::vector<Importer> list = rows;
    for (const Importer& importer : hugging_face_importers()) list.push_back(importer);
    return list;
  }();
  return all;
}

}  // namespace

std::vector<std::string> import_sources() {
  std::vector<std::string> names;
  for (const Importer& importer : importers()) names.push_back(importer.source);
  return names;
}

std::vector<std::string> verify_sources() {
  std::vector<std::string> names = import_sources();
  names.push_back(translation_source);
  return names;
}

const Importer& find_importer(const std::string& source) {
  for (const Importer& importer : importers())
    if (importer.source == source) return importer;
  const bool translator = source == translation_source;
  throw UsageError("import", concat("got source '", source, "', expected one of ", join(import_sources(), ", "), ".",
                                    translator ? " Translators can be verified only." : ""));
}

}  // namespace normlab
