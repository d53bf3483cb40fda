#include "normlab/infer/import_translation.h"

#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "normlab/base/error.h"
#include "normlab/base/json.h"
#include "normlab/base/text.h"
#include "normlab/models/weights.h"

namespace normlab {
namespace {

using nlohmann::json;
using torch::Tensor;

constexpr int longest_sentence = 1024;  // their positions have no end

ImportedTranslator shape_of(const json& c) {
  ImportedTranslator out{
      .model = {}, .norm = find_scheme(c.at("mha_sup").get<bool>() ? "qknorm" : "none"), .shape = {}};
  out.norm.placement = c.at("pre_act").get<bool>() ? NormPlacement::pre : NormPlacement::post;
  if (c.at("scnorm").get<bool>()) out.norm.sublayer = SublayerNorm::scale;
  if (c.at("fix_norm").get<bool>()) out.norm.embedding = EmbeddingNorm::fixnorm;
  out.model.n_layers = size_in(c, "num_dec_layers");
  out.model.n_heads = size_in(c, "num_heads");
  out.model.d_model = size_in(c, "embed_dim");
  out.model.d_ff = size_in(c, "ff_dim");
  out.model.seq_len = longest_sentence;
  out.model.activation = Activation::relu;
  out.model.positions = Positions::sine;
  out.model.bias = c.at("use_bias");
  out.model.dropout = c.value("dropout", 0.0);
  out.model.mlp_dropout = c.value("ff_dropout", 0.0);
  out.model.init = InitRule::small;
  out.shape = {.vocab_size = size_in(c, "joint_vocab_size"),
               .n_languages = size_in(c, "lang_vocab_size"),
               .encoder_layers = size_in(c, "num_enc_layers"),
               .length_p975 = c.value("seq_len_threshold", 2),
               .label_smoothing = c.value("label_smoothing", 0.0)};
  out.mask_by_language = c.value("mask_logit", true);
  constexpr int widest_beam = 1000;
  out.beam = std::clamp(c.value("beam_size", 4), 1, widest_beam);
  out.length_penalty = std::max(0.0, c.value("beam_alpha", 0.6));  // theirs has -1 for none
  return out;
}

// Where the pieces of their model are in ours.
class PartList {
 public:
  PartList(EncoderDecoder& model, int64_t d) : d_(d) {
    for (auto& [name, tensor] : model.parameters()) rows_.emplace(name, tensor.size(0));
  }

  void add(const std::string& theirs, const std::string& ours) { add(theirs, 0, ours); }

  // Theirs holds q, k, v and the output one below the other.
  void add_attention(const std::string& theirs, const std::string& ours) {
    for (const auto& [their_end, our_end] : {std::pair(".weights", ".weight"), std::pair(".biases", ".bias")}) {
      add(theirs + their_end, 0, ours + ".qkv" + our_end);
      add(theirs + their_end, 0, ours + ".q" + our_end);
      add(theirs + their_end, d_, ours + ".kv" + our_end);
      add(theirs + their_end, 3 * d_, ours + ".out" + our_end);
    }
    add(theirs + ".mha_scale.scale", ours + ".qk_gain");
  }

  void add_mlp(const std::string& theirs, const std::string& ours) {
    for (const char* end : {".weight", ".bias"}) {
      add(theirs + ".in_proj" + end, ours + ".in" + end);
      add(theirs + ".out_proj" + end, ours + ".out" + end);
    }
  }

  void add_norm(const std::string& theirs, const std::string& ours, bool scale_norm) {
    add(theirs + (scale_norm ? ".scale" : ".weight"), ours + ".weight");
    add(theirs + ".bias", ours + ".bias");
  }

  std::vector<TensorPart> take() { return std::move(parts_); }

 private:
  void add(const std::string& theirs, int64_t first_row, const std::string& ours) {
    if (const auto found = rows_.find(ours); found != rows_.end())  // others are what the model does not have
      parts_.push_back({theirs, first_row, found->second, ours});
  }

  int64_t d_;
  std::map<std::string, int64_t> rows_;
  std::vector<TensorPart> parts_;
};

}  // namespace

ImportedTranslator read_translator(const std::string& config_json, const std::string& kernels) {
  try {
    ImportedTranslator out = shape_of(parse_json(config_json));
    FieldList list;
    list_fields(out.model, list);
    list.at("model.kernels", "import").set(kernels);
    resolve_model(out.model, out.norm);
    return out;
  } catch (const json::exception& error) {
    throw DataError(translation_source, concat("the configuration lacks something (", error.what(), ")."));
  }
}

std::vector<TensorPart> translator_parts(const ImportedTranslator& imported, EncoderDecoder& model) {
  PartList list(model, imported.model.d_model);
  const bool scale_norm = imported.norm.sublayer == SublayerNorm::scale;
  const auto norm = [&](const std::string& stack, int index, const std::string& ours) {
    list.add_norm(concat(stack, ".scales.", index), ours, scale_norm);
  };
  list.add("word_embedding", "embedding.weight");
  list.add("lang_embedding", "languages.weight");
  list.add("out_bias", "out_bias");
  const int n_encoder = imported.shape.encoder_layers, n_decoder = imported.model.n_layers;
  for (int i = 0; i < n_encoder; ++i) {
    const std::string ours = concat("encoder.", i);
    list.add_attention(concat("encoder.atts.", i), ours + ".attn");
    list.add_mlp(concat("encoder.ffs.", i), ours + ".mlp");
    norm("encoder", 2 * i, ours + ".attn_norm");
    norm("encoder", 2 * i + 1, ours + ".mlp_norm");
  }
  norm("encoder", 2 * n_encoder, "encoder_norm");
  for (int i = 0; i < n_decoder; ++i) {
    const std::string ours = concat("decoder.", i);
    list.add_attention(concat("decoder.atts.", i), ours + ".attn");
    list.add_attention(concat("decoder.cross_atts.", i), ours + ".cross");
    list.add_mlp(concat("decoder.ffs.", i), ours + ".mlp");
    norm("decoder", 3 * i, ours + ".attn_norm");
    norm("decoder", 3 * i + 1, ours + ".cross_norm");
    norm("decoder", 3 * i + 2, ours + ".mlp_norm");
  }
  norm("decoder", 3 * n_decoder, "decoder_norm");
  return list.take();
}

Tensor rows_of(const Tensor& theirs, const TensorPart& part) {
  const Tensor flat = theirs.dim() == 0 ? theirs.view({1}) : theirs;
  if (part.first_row + part.rows > flat.size(0))
    throw DataError(part.theirs,
                    concat("has ", flat.size(0), " rows, expected at least ", part.first_row + part.rows, "."));
  return flat.narrow(0, part.first_row, part.rows);
}

EncoderDecoder import_translator(const ImportedTranslator& imported, const SafetensorsFile& file,
                                 const std::string& prefix) {
  EncoderDecoder model(imported.model, imported.norm, imported.shape, 0);
  std::map<std::string, Tensor> ours;
  for (auto& [name, tensor] : model.parameters()) ours.emplace(name, tensor);
  const torch::NoGradGuard no_grad;
  std::set<std::string> used;
  for (const TensorPart& part : translator_parts(imported, model)) {
    const Tensor theirs = rows_of(load_tensor(file.at(prefix + part.theirs)), part), &to = ours.at(part.ours);
    if (theirs.sizes() != to.sizes())
      throw DataError(file.path().string(), concat("'", part.theirs, "' is ", c10::str(theirs.sizes()), ", expected ",
                                                   c10::str(to.sizes()), "."));
    to.copy_(theirs);
    used.insert(prefix + part.theirs);
  }
  for (const TensorView& view : file.tensors())
    if (view.name.starts_with(prefix) && !used.contains(view.name))
      throw DataError(file.path().string(), concat("tensor '", view.name, "' has no place in the model."));
  return model;
}

}  // namespace normlab
