#include "normlab/infer/hf_export.h"

#include <cmath>
#include <map>
#include <nlohmann/json.hpp>

#include "normlab/base/error.h"
#include "normlab/base/random.h"
#include "normlab/base/staging.h"
#include "normlab/base/text.h"
#include "normlab/data/byte_characters.h"
#include "normlab/data/subword_tokenizer.h"
#include "normlab/infer/absorb.h"
#include "normlab/infer/hf_checkpoint.h"
#include "normlab/infer/hf_modelling.h"
#include "normlab/models/weights.h"

namespace normlab {
namespace {

namespace fs = std::filesystem;
using nlohmann::ordered_json;
using torch::Tensor;

// The model with absorbed constants, or as it is when there are none.
Absorbed absorbed_or_same(DecoderLm& model) {
  try {
    return absorb(model);
  } catch (const UsageError&) {
    return {.config = model.config(), .scheme = model.scheme(), .tensors = model.state()};
  }
}

// Applies `change` to the rows [h, d, ...] of queries and keys in the map qkv, its bias, and their norms' gains.
template <class Change>
void change_queries_and_keys(Absorbed& model, const Change& change, bool gains_too) {
  const int64_t d = model.config.d_head, rows = (int64_t{model.config.n_heads} + model.config.n_kv_heads) * d;
  for (auto& [name, tensor] : model.tensors) {
    const bool qkv = name.find(".attn.qkv.") != std::string::npos;
    const bool gain =
        name.find(".attn.q_norm.") != std::string::npos || name.find(".attn.k_norm.") != std::string::npos;
    if (!qkv && !(gain && gains_too)) continue;
    const int64_t changed = qkv ? rows : tensor.size(0);
    Tensor heads = tensor.narrow(0, 0, changed);
    std::vector<int64_t> by_head = {changed / d, d}, sizes(heads.sizes().begin(), heads.sizes().end());
    by_head.insert(by_head.end(), sizes.begin() + 1, sizes.end());
    heads = change(heads.reshape(by_head)).reshape(sizes);
    tensor = torch::cat({heads, tensor.narrow(0, changed, tensor.size(0) - changed)});
  }
}

// Pairs of channels (2i, 2i + 1) become (i, i + d/2), as transformers rotates them.
void to_half_pairs(Absorbed& model) {
  if (model.config.positions != Positions::rope || model.config.rope_pairing == RopePairing::half) return;
  const auto half_first = [](const Tensor& heads) {
    const auto even = heads.slice(1, 0, std::nullopt, 2), odd = heads.slice(1, 1, std::nullopt, 2);
    return torch::cat({even, odd}, 1);
  };
  change_queries_and_keys(model, half_first, /*gains_too=*/true);
  model.config.rope_pairing = RopePairing::half;
}

// transformers has one epsilon for all norms: c q / sqrt(c^2 m + e) = q / sqrt(m + e / c^2).
void to_one_epsilon(Absorbed& model) {
  NormScheme& s = model.scheme;
  if (s.qk == QkNorm::none || s.qk_eps == s.sublayer_eps) return;
  constexpr double largest = 1 << 20;  // smaller epsilons than that gives are below rounding
  const double factor = std::min(std::sqrt(s.sublayer_eps / s.qk_eps), largest);
  change_queries_and_keys(
      model, [&](const Tensor& heads) { return heads * factor; }, /*gains_too=*/false);
  s.qk_eps = s.sublayer_eps;
}

// GPT-2 of transformers always has biases, Qwen3 always has gains of q and k.
DecoderLm in_form(Absorbed model, const std::string& type, int vocab_size) {
  if (type == "gpt2") model.config.bias = true;
  if (type == "qwen3" && model.scheme.qk_affine == QkAffine::none) model.scheme.qk_affine = QkAffine::shared;
  to_half_pairs(model);
  to_one_epsilon(model);
  ModelConfig config = model.config;
  config.kernels = Kernels::best;
  resolve_model(config, model.scheme);
  DecoderLm out(config, model.scheme, vocab_size, 0);
  const std::map<std::string, Tensor> tensors(model.tensors.begin(), model.tensors.end());
  const torch::NoGradGuard no_grad;
  for (auto& [name, tensor] : out.state()) {
    const auto found = tensors.find(name);
    if (found != tensors.end())
      tensor.copy_(found->second);
    else
      tensor.fill_(name.ends_with(".bias") ? 0.0 : 1.0);  // what leaves the logits as they are
  }
  return out;
}

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
    const Tensor part = ours.at(match.ours).detach().narrow(0, match.first_row, match.rows);
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

void check_logits(HfExport& result, const DecoderLm& original, const DecoderLm& written) {
  const torch::NoGradGuard no_grad;
  const int64_t length = std::min(original.config().seq_len, 256);
  const Tensor tokens = torch::empty({1, length}, torch::kInt64);
  for (int64_t i = 0; i < length; ++i)
    tokens[0][i] = static_cast<int64_t>(
        draw_below(stream_key(0x6866), static_cast<uint64_t>(i), static_cast<uint64_t>(original.vocab_size())));
  const Tensor expected = original.logits(tokens, {}), got = written.logits(tokens, {});
  result.largest_logit = expected.abs().max().item<double>();
  result.largest_difference = (expected - got).abs().max().item<double>();
  constexpr double tolerance = 1e-4;  // of float32 sums in another order, with room for deep models
  if (!(result.largest_difference <= tolerance * std::max(1.0, result.largest_logit)))
    throw Error("export", concat("the logits of the ", result.form.type, " checkpoint differ by ",
                                 significant(result.largest_difference, 3), " from the model's (largest ",
                                 significant(result.largest_logit, 3), "); nothing was written."));
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

HfExport export_to_hf(const fs::path& folder, DecoderLm& model, const Tokenizer& tokenizer) {
  Absorbed absorbed = absorbed_or_same(model);
  HfExport result{.form = hf_form(absorbed.config, absorbed.scheme)};
  const bool own_file = result.form.type == "normlab";
  DecoderLm out = own_file ? model : in_form(absorbed, result.form.type, tokenizer.vocab_size());
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
