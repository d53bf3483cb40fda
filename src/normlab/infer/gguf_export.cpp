#include "normlab/infer/gguf_export.h"

#include <map>

#include "normlab/base/error.h"
#include "normlab/base/staging.h"
#include "normlab/base/text.h"
#include "normlab/infer/gguf_tokenizer.h"
#include "normlab/infer/import.h"
#include "normlab/record/gguf.h"

namespace normlab {
namespace {

namespace fs = std::filesystem;
using torch::Tensor;

constexpr const char* head_name = "output.weight";

// llama.cpp's names for our tensors.
const Importer& names_of(const std::string& type) {
  static const Importer gpt2{"gguf",
                             {
                                 {"token_embd.weight", "embedding.weight"},
                                 {"position_embd.weight", "positions.weight"},
                                 {"blk.{i}.attn_norm.weight", "layers.{i}.attn_norm.weight"},
                                 {"blk.{i}.attn_norm.bias", "layers.{i}.attn_norm.bias"},
                                 {"blk.{i}.attn_qkv.weight", "layers.{i}.attn.qkv.weight"},
                                 {"blk.{i}.attn_qkv.bias", "layers.{i}.attn.qkv.bias"},
                                 {"blk.{i}.attn_output.weight", "layers.{i}.attn.out.weight"},
                                 {"blk.{i}.attn_output.bias", "layers.{i}.attn.out.bias"},
                                 {"blk.{i}.ffn_norm.weight", "layers.{i}.mlp_norm.weight"},
                                 {"blk.{i}.ffn_norm.bias", "layers.{i}.mlp_norm.bias"},
                                 {"blk.{i}.ffn_up.weight", "layers.{i}.mlp.in.weight"},
                                 {"blk.{i}.ffn_up.bias", "layers.{i}.mlp.in.bias"},
                                 {"blk.{i}.ffn_down.weight", "layers.{i}.mlp.out.weight"},
                                 {"blk.{i}.ffn_down.bias", "layers.{i}.mlp.out.bias"},
                                 {"output_norm.weight", "final_norm.weight"},
                                 {"output_norm.bias", "final_norm.bias"},
                                 {head_name, "head.weight"},
                             },
                             nullptr};
  const auto rope_decoder = [](const std::string& attn_norm, const std::string& mlp_norm) {
    Importer out{"gguf",
                 {{"token_embd.weight", "embedding.weight"},
                  {"blk.{i}." + attn_norm + ".weight", "layers.{i}.attn_norm.weight"},
                  {"blk.{i}." + mlp_norm + ".weight", "layers.{i}.mlp_norm.weight"},
                  {"blk.{i}.attn_q_norm.weight", "layers.{i}.attn.q_norm.weight"},
                  {"blk.{i}.attn_k_norm.weight", "layers.{i}.attn.k_norm.weight"},
                  {"output_norm.weight", "final_norm.weight"},
                  {head_name, "head.weight"}},
                 nullptr};
    for (const char* kind : {"weight", "bias"}) {
      const auto add = [&](const char* theirs, const char* ours, RowPart part) {
        out.names.push_back({concat("blk.{i}.", theirs, ".", kind), concat("layers.{i}.", ours, ".", kind), part});
      };
      add("attn_q", "attn.qkv", RowPart::q);
      add("attn_k", "attn.qkv", RowPart::k);
      add("attn_v", "attn.qkv", RowPart::v);
      add("attn_output", "attn.out", RowPart::all);
      add("ffn_up", "mlp.in", RowPart::up);
      add("ffn_gate", "mlp.in", RowPart::gate);
      add("ffn_down", "mlp.out", RowPart::all);
    }
    return out;
  };
  static const Importer before = rope_decoder("attn_norm", "ffn_norm"),
                        after = rope_decoder("post_attention_norm", "post_ffw_norm");
  return type == "gpt2" ? gpt2 : type == "olmo2" ? after : before;
}

// What llama.cpp's architecture of that name lacks for the model; empty: nothing.
std::string why_not_gguf(const HfForm& form, const ModelConfig& c) {
  if (form.type == "normlab") return form.reason;
  if (c.positions == Positions::rope && c.rope_scaling != RopeScaling::none) return "rotary positions are scaled";
  if (form.type == "gpt2" && c.activation != Activation::gelu_tanh)
    return "the gpt2 of llama.cpp has the activation gelu_tanh only";
  if (form.type == "olmo2" && c.n_heads * c.d_head != c.d_model)
    return "the olmo2 of llama.cpp has heads that make up d_model";
  return "";
}

std::vector<GgufPair> metadata(const std::string& type, const ModelConfig& c, const NormScheme& s, int vocab_size) {
  std::vector<GgufPair> out = {{"general.architecture", type},
                               {"general.type", "model"},
                               {"general.name", "normlab"},
                               {"general.file_type", 0U}};  // float32
  const auto size = [&](const char* key, int value) {
    out.push_back({concat(type, ".", key), static_cast<uint32_t>(value)});
  };
  const auto real = [&](const char* key, double value) {
    out.push_back({concat(type, ".", key), static_cast<float>(value)});
  };
  size("context_length", c.seq_len);
  size("embedding_length", c.d_model);
  size("block_count", c.n_layers);
  size("feed_forward_length", c.d_ff);
  size("attention.head_count", c.n_heads);
  size("vocab_size", vocab_size);
  if (type == "gpt2") {
    real("attention.layer_norm_epsilon", s.sublayer_eps);
    return out;
  }
  size("attention.head_count_kv", c.n_kv_heads);
  size("attention.key_length", c.d_head);
  size("attention.value_length", c.d_head);
  size("rope.dimension_count", c.d_head);
  real("rope.freq_base", c.rope_base);
  real("attention.layer_norm_rms_epsilon", s.sublayer_eps);
  return out;
}

void write_model(const fs::path& path, DecoderLm& model, const std::string& type, std::vector<GgufPair> pairs) {
  std::map<std::string, Tensor> ours;
  for (auto& [name, tensor] : model.state()) ours.emplace(name, tensor.detach());
  std::vector<TensorView> views;
  const auto add = [&](const std::string& name, const Tensor& rows) {  // whose rows are together in memory
    views.push_back({.name = name,
                     .dtype = Dtype::f32,
                     .shape = rows.sizes().vec(),
                     .data = static_cast<const std::byte*>(rows.const_data_ptr()),
                     .bytes = rows.nbytes()});
  };
  const ImportedShape shape{model.config(), model.scheme(), model.vocab_size()};
  for (const NameMatch& match : match_names(names_of(type), shape, model))
    add(match.theirs, ours.at(match.ours).narrow(0, match.first_row, match.rows));
  // Where llama.cpp does not take the embedding for a head that is missing.
  if (model.config().tied_head && (type == "gpt2" || type == "olmo2")) add(head_name, ours.at("embedding.weight"));
  write_gguf(path, pairs, views);
}

DecoderLm read_model(const fs::path& path, DecoderLm& written, const std::string& type) {
  const GgufFile file(path);
  TensorSource source{
      .where = path.string(), .names = {}, .at = [&](const std::string& name) { return file.at(name); }};
  for (const auto& [name, view] : file.tensors())
    if (name != head_name || !written.config().tied_head) source.names.push_back(name);
  return import_model(names_of(type), {written.config(), written.scheme(), written.vocab_size()}, source);
}

}  // namespace

ModelExport export_to_gguf(const fs::path& path, DecoderLm& model, const Tokenizer& tokenizer) {
  if (fs::exists(path)) throw UsageError("--out", concat("'", path.string(), "' exists already; name a new file."));
  const Absorbed absorbed = absorbed_or_same(model);
  ModelExport result{.form = hf_form(absorbed.config, absorbed.scheme), .absorbed = absorbed.absorbed};
  const std::string type = result.form.type;
  if (const std::string reason = why_not_gguf(result.form, absorbed.config); !reason.empty())
    throw UsageError(
        "--to", concat("gguf takes models that are llama, qwen3, olmo2 or gpt2; this one is none, because ", reason,
                       ". Use --to hf."));
  std::vector<GgufPair> pairs = gguf_tokenizer(tokenizer);
  // llama.cpp's llama rotates neighbouring channels, its other architectures halves.
  const RopePairing pairing = type == "llama" ? RopePairing::interleaved : RopePairing::half;
  DecoderLm out = in_form(absorbed, type, pairing, tokenizer.vocab_size());
  const std::vector<GgufPair> about_model = metadata(type, out.config(), out.scheme(), tokenizer.vocab_size());
  pairs.insert(pairs.begin(), about_model.begin(), about_model.end());

  const StagedFolder staged(path);  // never committed: the file alone takes its place
  const fs::path file = staged.path() / "model.gguf";
  write_model(file, out, type, std::move(pairs));
  check_logits(result, model, read_model(file, out, type));
  fs::rename(file, path);
  sync_folder_of(path);
  return result;
}

}  // namespace normlab
