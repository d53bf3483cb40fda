#include "normlab/infer/gguf_tokenizer.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "normlab/base/error.h"
#include "normlab/base/json.h"
#include "normlab/base/text.h"
#include "normlab/data/byte_characters.h"
#include "normlab/data/subword_tokenizer.h"
#include "normlab/infer/hf_export.h"

namespace normlab {
namespace {

using nlohmann::json;

enum TokenType : int32_t { normal_token = 1, control_token = 3, user_token = 4, unused_token = 5 };

[[noreturn]] void refuse(const std::string& reason) {
  throw UsageError("--to", concat("gguf cannot hold this tokenizer: ", reason, ". Use --to hf."));
}

// The patterns of Split that llama.cpp has built in, by its names for them.
struct Pattern {
  const char *name, *regex;
};
constexpr Pattern patterns[] = {
    {"qwen2",
     R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)"},
    {"llama-bpe",
     R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)"},
};

// What llama.cpp calls the way in which the text is split.
std::string split_name(const json& pre_tokenizer, bool has_merges) {
  const json parts = pre_tokenizer.is_object() && pre_tokenizer.contains("pretokenizers")
                         ? pre_tokenizer["pretokenizers"]
                         : json::array({pre_tokenizer});
  const json last = parts.empty() ? json() : parts.back();
  if (!last.is_object() || last.value("type", "") != "ByteLevel") refuse("its symbols are not bytes");
  if (last.value("add_prefix_space", true)) refuse("it puts a space before a text");
  if (!has_merges) return "gpt-2";  // every byte is a token, however the text is split
  const bool regex = last.value("use_regex", true);
  if (parts.size() == 1 && regex) return "gpt-2";
  if (parts.size() == 2 && !regex && parts[0].value("type", "") == "Split" &&
      parts[0].value("behavior", "") == "Isolated" && !parts[0].value("invert", false))
    for (const Pattern& pattern : patterns)
      if (parts[0].at("pattern").value("Regex", "") == pattern.regex) return pattern.name;
  refuse("llama.cpp has no such way to split a text; it has those of GPT-2, Qwen2 and Llama 3");
}

// A token that ends texts: llama.cpp always has one and stops there. Without any it is the byte 0, which no text has.
uint32_t end_token(const std::vector<std::string>& tokens, const std::vector<int32_t>& types) {
  for (const std::string name : {"<|endoftext|>", "</s>", "<|end_of_text|>", "<eos>"})
    if (const auto found = std::ranges::find(tokens, name); found != tokens.end())
      return static_cast<uint32_t>(found - tokens.begin());
  if (const auto special = std::ranges::find(types, control_token); special != types.end())
    return static_cast<uint32_t>(special - types.begin());
  const auto zero = std::ranges::find(tokens, bytes_as_characters(std::string(1, '\0')));
  if (zero == tokens.end()) refuse("it has neither a special token nor the byte 0 to end a text");
  return static_cast<uint32_t>(zero - tokens.begin());
}

std::vector<std::string> merges_of(const json& model) {
  std::vector<std::string> merges;
  for (const json& merge : model.value("merges", json::array()))
    merges.push_back(merge.is_array() ? concat(merge.at(0).get<std::string>(), " ", merge.at(1).get<std::string>())
                                      : merge.get<std::string>());
  return merges;
}

}  // namespace

std::vector<GgufPair> gguf_tokenizer(const Tokenizer& tokenizer) {
  if (tokenizer.kind() == TokenizerKind::characters)
    refuse("its symbols are characters, llama.cpp's are bytes; train with data.tokenizer=byte or subword");
  const json file = parse_json(hf_tokenizer_json(tokenizer));
  const std::vector<std::string> merges = merges_of(file.at("model"));
  const std::string split = split_name(file.value("pre_tokenizer", json()), !merges.empty());
  const json normalizer = file.value("normalizer", json());
  if (!normalizer.is_null() && normalizer.value("type", "") != "NFC") refuse("it changes the text before splitting it");
  if (!merges.empty() && file["model"].value("ignore_merges", false) != (split == "llama-bpe"))
    refuse(concat("ignore_merges is not what llama.cpp has for ", split));

  std::vector<std::string> tokens;
  for (int32_t id = 0; id < tokenizer.vocab_size(); ++id) tokens.push_back(concat("[PAD", id, "]"));
  std::vector<int32_t> types(tokens.size(), unused_token);
  const auto set = [&](size_t id, const std::string& text, TokenType type) {
    tokens.at(id) = text;
    types.at(id) = type;
  };
  for (const auto& [text, id] : file.at("model").at("vocab").items()) set(id.get<size_t>(), text, normal_token);
  for (const json& added : file.value("added_tokens", json::array())) {
    const std::string text = added.at("content");
    if (added.value("lstrip", false) || added.value("rstrip", false))
      refuse(concat("the added token '", text, "' takes the white space around it"));
    set(added.at("id").get<size_t>(), text, added.value("special", false) ? control_token : user_token);
  }
  const std::vector<int32_t> first =
      tokenizer.subwords() ? tokenizer.subwords()->first_tokens() : std::vector<int32_t>();
  if (first.size() > 1) refuse("it puts several tokens before a text");
  const uint32_t end = end_token(tokens, types);
  return {{"tokenizer.ggml.model", "gpt2"},
          {"tokenizer.ggml.pre", split},
          {"tokenizer.ggml.tokens", tokens},
          {"tokenizer.ggml.token_type", types},
          {"tokenizer.ggml.merges", merges},
          {"tokenizer.ggml.bos_token_id", first.empty() ? end : static_cast<uint32_t>(first.front())},
          {"tokenizer.ggml.eos_token_id", end},
          {"tokenizer.ggml.add_bos_token", !first.empty()}};
}

}  // namespace normlab
