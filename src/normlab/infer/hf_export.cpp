#include "normlab/infer/hf_export.h"

#include <map>
#include <nlohmann/json.hpp>

#include "normlab/base/error.h"
#include "normlab/base/staging.h"
#include "normlab/base/text.h"
#include "normlab/data/byte_characters.h"
#include "normlab/data/subword_tokenizer.h"
#include "normlab/infer/hf_checkpoint.h"
#include "normlab/infer/hf_modelling.h"
#include "normlab/models/weights.h"

namespace normlab {
namespace {

namespace fs = std::filesystem;
using nlohmann::ordered_json;
using torch::Tensor;

// Under the names of transformers.
NamedTensors named_tensors(DecoderLm& model, const std::string& type) {
  NamedTensors out;
  if (type == "normlab") {
    for (auto& [name, tensor] : model.state()) out.emplace_back("model." + name, tensor);
    return out;
  }
  const std::map<std::string, Tensor> ours = [&] {
    const NamedTensors list = model.state();
    return std::map<std::string, Tensor>(list.begin(), list.end());
  }();
  const ImportedShape shape{model.config(), model.scheme(), model.vocab_size()};
  for (const NameMatch& match : match_names(find_importer(type), shape, model)) {
    const Tensor rows = ours.at(match.ours).detach().narrow(0, match.first_row, match.rows);
    const Tensor part = match.plus_one ? rows - 1.0 : rows;
    out.emplace_back(match.theirs, (match.transposed ? part.t() : part).contiguous());
  }
  return out;
}

// What the written files compute.
DecoderLm read_back(const fs::path& folder, const HfForm& form, DecoderLm& original) {
  if (form.type != "normlab") return read_hf_model(folder).model;
  DecoderLm model(original.config(), original.scheme(), original.vocab_size(), 0);
  NamedTensors named;
  for (auto& [name, tensor] : model.state()) named.emplace_back("model." + name, tensor);
  load_tensors(folder / "model.safetensors", named);
  return model;
}

ordered_json tokenizer_config(const Tokenizer& tokenizer, int seq_len) {
  ordered_json out = {{"tokenizer_class", "PreTrainedTokenizerFast"},
                      {"model_max_length", seq_len},
                      {"clean_up_tokenization_spaces", false}};
  if (tokenizer.subwords() && tokenizer.subwords()->content().find("\"<|endoftext|>\"") != std::string::npos)
    out["eos_token"] = "<|endoftext|>";
  return out;
}

}  // namespace

std::string hf_tokenizer_json(const Tokenizer& tokenizer) {
  if (tokenizer.subwords()) return tokenizer.subwords()->content();
  if (tokenizer.kind() == TokenizerKind::ids)
    throw UsageError("export",
                     "the model was trained on token files without their tokenizer: train it with "
                     "data.tokenizer=subword and data.tokenizer_file.");
  const bool bytes = tokenizer.kind() == TokenizerKind::bytes;
  ordered_json vocabulary = ordered_json::object();
  for (int32_t token = 0; token < tokenizer.vocab_size(); ++token) {
    const std::string text = tokenizer.bytes_of(token);
    vocabulary[bytes ? bytes_as_characters(text) : text] = token;
  }
  const ordered_json byte_level = {
      {"type", "ByteLevel"}, {"add_prefix_space", false}, {"trim_offsets", true}, {"use_regex", false}};
  const ordered_json file = {{"version", "1.0"},
                             {"truncation", nullptr},
                             {"padding", nullptr},
                             {"added_tokens", ordered_json::array()},
                             {"normalizer", nullptr},
                             {"pre_tokenizer", bytes ? byte_level : ordered_json()},
                             {"post_processor", nullptr},
                             {"decoder", bytes ? byte_level : ordered_json({{"type", "Fuse"}})},
                             {"model",
                              {{"type", "BPE"},
                               {"dropout", nullptr},
                               {"unk_token", nullptr},
                               {"continuing_subword_prefix", nullptr},
                               {"end_of_word_suffix", nullptr},
                               {"fuse_unk", false},
                               {"byte_fallback", false},
                               {"ignore_merges", false},
                               {"vocab", vocabulary},
                               {"merges", ordered_json::array()}}}};
  return file.dump() + "\n";
}

ModelExport export_to_hf(const fs::path& folder, DecoderLm& model, const Tokenizer& tokenizer) {
  const HfForm gemma = gemma_form(model.config(), model.scheme());
  Absorbed absorbed = gemma.type.empty()
                          ? absorbed_or_same(model)
                          : Absorbed{.config = model.config(), .scheme = model.scheme(), .tensors = model.state()};
  ModelExport result{.form = gemma.type.empty() ? hf_form(absorbed.config, absorbed.scheme) : gemma};
  const bool own_file = result.form.type == "normlab";
  DecoderLm out = own_file ? model : in_form(absorbed, result.form.type, RopePairing::half, tokenizer.vocab_size());
  if (!own_file) result.absorbed = absorbed.absorbed;

  StagedFolder staged(folder);
  const auto write = [&](const char* name, const std::string& text) {
    write_file_atomically(staged.path() / name, text);
  };
  write("config.json", hf_config(result.form.type, out.config(), out.scheme(), tokenizer.vocab_size()).dump(2) + "\n");
  write("generation_config.json", ordered_json{{"use_cache", !own_file}}.dump(2) + "\n");
  write("tokenizer.json", hf_tokenizer_json(tokenizer));
  write("tokenizer_config.json", tokenizer_config(tokenizer, out.config().seq_len).dump(2) + "\n");
  if (own_file) write("modeling_normlab.py", modelling_file());
  save_tensors(staged.path() / "model.safetensors", named_tensors(out, result.form.type), {{"format", "pt"}});
  check_logits(result, model, read_back(staged.path(), result.form, model));
  staged.commit();
  return result;
}

}  // namespace normlab
