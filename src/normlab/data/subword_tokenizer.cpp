#include "normlab/data/subword_tokenizer.h"

#include <nlohmann/json.hpp>

#include "normlab/base/error.h"
#include "normlab/base/file.h"
#include "normlab/base/json.h"
#include "normlab/base/text.h"
#include "normlab/data/utf8.h"

namespace normlab {
namespace {

using nlohmann::json;

json parse_tokenizer(const std::string& content, const std::string& where) {
  json file = parse_json(content);
  if (!file.is_object() || !file.contains("model") || !file["model"].is_object())
    throw DataError(where, "is not a tokenizer.json: expected a JSON object with the key \"model\".");
  // Files of before 2021 leave the type out.
  const std::string type = file["model"].value("type", file["model"].contains("merges") ? "BPE" : "of unknown type");
  if (type != "BPE") throw DataError(where, concat("the model is ", type, "; only BPE is supported."));
  return file;
}

bool is_within_character(char byte) { return (static_cast<uint8_t>(byte) & 0xC0) == 0x80; }

// Reads a part of the file; what nlohmann says about its types becomes one sentence that names the part.
template <class Read>
void part_of(const json& file, const char* key, const std::string& where, Read read) {
  try {
    read(file.value(key, json()));
  } catch (const json::exception& error) {
    throw DataError(where, concat("the part \"", key, "\" is damaged (", error.what(), ")."));
  }
}

}  // namespace

SubwordTokenizer::SubwordTokenizer(std::string content, const std::string& where) : content_(std::move(content)) {
  const json file = parse_tokenizer(content_, where);
  part_of(file, "normalizer", where, [&](const json& part) { normalizer_ = SubwordNormalizer(part, where); });
  part_of(file, "pre_tokenizer", where, [&](const json& part) { pre_tokenizer_ = PreTokenizer(part, where); });
  part_of(file, "model", where, [&](const json& part) { model_ = BpeModel(part, pre_tokenizer_.byte_level(), where); });
  part_of(file, "decoder", where, [&](const json& part) { decoder_ = SubwordDecoder(part, where); });
  part_of(file, "added_tokens", where, [&](const json& part) { read_added_tokens(part, where); });
  part_of(file, "post_processor", where, [&](const json& part) { read_first_tokens(part); });
  read_texts(where);
}

SubwordTokenizer SubwordTokenizer::read(const std::filesystem::path& path) { return {read_file(path), path.string()}; }

void SubwordTokenizer::read_added_tokens(const json& list, const std::string& where) {
  for (const json& row : list) {
    if (!row.at("id").is_number_unsigned())
      throw DataError(where, concat("the id of an added token is ", row["id"].dump(), "; expected a whole number."));
    AddedToken token{.id = row.at("id"),
                     .content = row.at("content"),
                     .lstrip = row.value("lstrip", false),
                     .rstrip = row.value("rstrip", false),
                     .normalized = row.value("normalized", false),
                     .special = row.value("special", false)};
    if (row.value("single_word", false))
      throw DataError(where, concat("the added token '", token.content, "' has single_word, which is not supported."));
    const int32_t expected = model_.id_of(token.content).value_or(token.id);
    if (token.id < 0 || token.id > (1 << 30) || token.id != expected)
      throw DataError(where, concat("the added token '", token.content, "' has the id ", token.id,
                                    ", in the vocabulary ", expected, "."));
    if (token.normalized)
      in_normalized_.add(normalizer_.normalize(token.content), token);
    else
      in_text_.add(token.content, token);
    added_.push_back(std::move(token));
  }
}

void SubwordTokenizer::read_first_tokens(const json& processor) {
  if (!processor.is_object()) return;
  for (const json& part : processor.value("processors", json::array())) read_first_tokens(part);
  if (processor.value("type", "") != "TemplateProcessing") return;
  for (const json& item : processor.at("single")) {
    if (item.contains("Sequence")) break;  // here the text stands
    const std::string name = item.at("SpecialToken").at("id");
    for (const json& id : processor.at("special_tokens").at(name).at("ids"))
      first_tokens_.push_back(id.is_number_unsigned() ? id.get<int32_t>() : -1);  // which is refused
  }
}

void SubwordTokenizer::read_texts(const std::string& where) {
  const auto set = [&](int32_t id, const std::string& text) {
    constexpr size_t most_gaps = 1 << 20;
    const auto at = static_cast<size_t>(id);
    if (at > model_.vocabulary().size() + added_.size() + most_gaps)
      throw DataError(where, concat("the token '", text, "' has the id ", id, ", far beyond the number of tokens."));
    if (at >= texts_.size()) texts_.resize(at + 1);
    texts_[at] = text;
  };
  for (const auto& [text, id] : model_.vocabulary()) set(id, text);
  for (const AddedToken& token : added_) set(token.id, token.content);
  for (const std::string& text : texts_) bytes_.push_back(decoder_.bytes_of(text, /*first=*/false));
  for (const int32_t token : first_tokens_)
    if (token < 0 || token >= vocab_size()) throw DataError(where, concat("has no token ", token, " to begin a text."));
}

std::vector<int32_t> SubwordTokenizer::encode(std::string_view text, const std::string& where) const {
  BpeModel::Cache cache;
  return encode(text, where, Part::first, cache);
}

std::vector<int32_t> SubwordTokenizer::encode(std::string_view text, const std::string& where, Part position,
                                              BpeModel::Cache& cache) const {
  using Place = PreTokenizer::Place;
  if (const auto offset = first_invalid_utf8(text))
    throw DataError(where, concat("not valid UTF-8 at byte ", *offset, ". A tokenizer.json reads UTF-8 text only."));
  std::vector<int32_t> tokens;
  const auto encode_part = [&](std::string_view part, Place place) {
    pre_tokenizer_.split(part, place, [&](std::string_view piece) { model_.encode(piece, cache, tokens); });
  };
  const Place start = position == Part::first ? Place::first : Place::continued;
  for (const TextPart& part : in_text_.split(text)) {
    if (part.id >= 0) {
      tokens.push_back(part.id);
      continue;
    }
    const Place place = part.text.data() == text.data() ? start : Place::later;
    std::string changed;
    if (!normalizer_.empty()) changed = normalizer_.normalize(std::string(part.text), place == Place::continued);
    const std::string_view normalized = normalizer_.empty() ? part.text : std::string_view(changed);
    for (const TextPart& inner : in_normalized_.split(normalized)) {
      if (inner.id >= 0)
        tokens.push_back(inner.id);
      else
        encode_part(inner.text, inner.text.data() == normalized.data() ? place : Place::later);
    }
  }
  return tokens;
}

bool SubwordTokenizer::can_cut(std::string_view text, size_t at) const {
  if (at < 2 || at >= text.size() || text[at - 1] != '\n') return false;
  const auto is_word = [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
  };
  const auto is_shown = [](char c) { return static_cast<uint8_t>(c) > ' '; };
  if (!is_word(text[at]) || !is_shown(text[at - 2]) || !normalizer_.works_line_by_line()) return false;
  for (const AddedToken& token : added_)
    if (token.content.find('\n') != token.content.npos || token.rstrip ||
        (token.lstrip && token.content.starts_with(text[at])))
      return false;
  constexpr size_t context = 256;  // bytes on either side that are looked at
  size_t begin = at - std::min(at, context), end = std::min(text.size(), at + context);
  while (begin < at && is_within_character(text[begin])) ++begin;
  while (end < text.size() && end > at && is_within_character(text[end])) --end;
  std::string left(text.substr(begin, at - begin)), right(text.substr(at, end - at));
  left = normalizer_.normalize(std::move(left), /*continues=*/true);
  right = normalizer_.normalize(std::move(right), /*continues=*/true);
  const PreTokenizer::Cut cut = pre_tokenizer_.cut_between(left, right);
  return cut == PreTokenizer::Cut::between_pieces ||
         (cut == PreTokenizer::Cut::within_piece && model_.line_feeds_end_tokens());
}

std::string SubwordTokenizer::decode(std::span<const int32_t> tokens) const {
  std::string text;
  for (size_t i = 0; i < tokens.size(); ++i) {
    const auto token = static_cast<size_t>(tokens[i]);
    text += i == 0 && token < texts_.size() ? decoder_.bytes_of(texts_[token], /*first=*/true) : bytes_of(tokens[i]);
  }
  return decoder_.stripped(std::move(text));
}

const std::string& SubwordTokenizer::bytes_of(int32_t token) const {
  static const std::string none;
  return static_cast<size_t>(token) < bytes_.size() ? bytes_[static_cast<size_t>(token)] : none;
}

}  // namespace normlab
