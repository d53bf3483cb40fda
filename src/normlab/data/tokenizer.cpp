// Tokenizer: a table from id to code point, and its inverse as a flat array.
#include "normlab/data/tokenizer.h"

#include <algorithm>
#include <functional>
#include <nlohmann/json.hpp>

#include "normlab/base/error.h"
#include "normlab/base/file.h"
#include "normlab/base/json.h"
#include "normlab/base/text.h"
#include "normlab/data/subword_tokenizer.h"
#include "normlab/data/utf8.h"

namespace normlab {
namespace {

constexpr int byte_values = 256;

// The numbers of a text of ids, separated by white space.
std::vector<int32_t> parse_ids(std::string_view text, int vocab_size, const std::string& where) {
  std::vector<int32_t> ids;
  for (const std::string& word : split(replace_all(std::string(text), "\n", " "), ' ')) {
    if (word.empty()) continue;
    const auto id = parse_integer(word);
    if (!id || *id < 0 || *id >= vocab_size)
      throw DataError(where, concat("got '", word, "', expected token ids from 0 to ", vocab_size - 1,
                                    ": the model was trained on token files, without their tokenizer."));
    ids.push_back(static_cast<int32_t>(*id));
  }
  return ids;
}

void require_utf8(std::string_view text, const std::string& where) {
  if (const auto offset = first_invalid_utf8(text))
    throw DataError(where, concat("not valid UTF-8 at byte ", *offset, ". The char tokenizer reads UTF-8 text only."));
}

}  // namespace

Tokenizer::Tokenizer(TokenizerKind kind, std::u32string symbols) : kind_(kind), symbols_(std::move(symbols)) {
  if (!symbols_.empty()) id_of_.assign(symbols_.back() + 1, -1);
  for (size_t id = 0; id < symbols_.size(); ++id) id_of_[symbols_[id]] = static_cast<int32_t>(id);
}

Tokenizer::Tokenizer(SubwordTokenizer subwords)
    : kind_(TokenizerKind::subwords),
      subwords_(std::make_shared<const SubwordTokenizer>(std::move(subwords))),
      padded_size_(subwords_->vocab_size()) {}

Tokenizer Tokenizer::read_subwords(const std::filesystem::path& path) {
  std::string content = read_file(path);
  constexpr size_t beginning = 64;  // where a checkpoint's own file names its kind
  if (content.substr(0, beginning).find("\"kind\"") != content.npos) return from_json(parse_json(content));
  return Tokenizer(SubwordTokenizer(std::move(content), path.string()));
}

Tokenizer Tokenizer::of_ids(int vocab_size) {
  Tokenizer tokenizer(TokenizerKind::ids);
  tokenizer.padded_size_ = vocab_size;
  return tokenizer;
}

Tokenizer Tokenizer::with_vocab_size(int size) const {
  if (size == vocab_size()) return *this;
  const bool grows = kind_ == TokenizerKind::subwords || kind_ == TokenizerKind::ids;
  if (!grows || size < vocab_size())
    throw DataError("tokenizer", concat("has ", vocab_size(), " tokens; the model has ", size, "."));
  Tokenizer padded = *this;
  padded.padded_size_ = size;
  return padded;
}

bool Tokenizer::operator==(const Tokenizer& other) const {
  if (kind_ != other.kind_ || vocab_size() != other.vocab_size()) return false;
  return subwords_ ? subwords_->content() == other.subwords_->content() : symbols_ == other.symbols_;
}

Tokenizer Tokenizer::make(std::string_view kind, std::string_view text) {
  if (kind == "byte") return Tokenizer(TokenizerKind::bytes);
  if (kind != "char")
    throw UsageError("data.tokenizer", concat("unknown kind; got \"", kind, "\", expected char or byte."));
  require_utf8(text, "text");
  CharacterSet characters;
  characters.add(text);
  return characters.tokenizer("text");
}

Tokenizer Tokenizer::of_characters(std::u32string symbols) {
  return Tokenizer(TokenizerKind::characters, std::move(symbols));
}

void CharacterSet::add(std::string_view text) {
  seen_.resize(largest_code_point + 1);
  for_each_code_point(text, [&](char32_t code_point, size_t) { seen_[code_point] = true; });
}

Tokenizer CharacterSet::tokenizer(const std::string& where) const {
  std::u32string symbols;
  for (size_t code_point = 0; code_point < seen_.size(); ++code_point)
    if (seen_[code_point]) symbols += static_cast<char32_t>(code_point);
  if (symbols.empty()) throw DataError(where, "no characters to make a vocabulary of; got an empty text.");
  return Tokenizer::of_characters(std::move(symbols));
}

std::vector<int32_t> Tokenizer::encode(std::string_view text, const std::string& where) const {
  if (subwords_) return subwords_->encode(text, where);
  if (kind_ == TokenizerKind::ids) return parse_ids(text, vocab_size(), where);
  std::vector<int32_t> tokens;
  tokens.reserve(text.size());
  if (kind_ == TokenizerKind::bytes) {
    for (const char byte : text) tokens.push_back(static_cast<uint8_t>(byte));
    return tokens;
  }
  require_utf8(text, where);
  for_each_code_point(text, [&](char32_t code_point, size_t offset) {
    const int32_t id = code_point < id_of_.size() ? id_of_[code_point] : -1;
    if (id < 0)
      throw DataError(where, concat("character ", describe_code_point(code_point), " at character ", tokens.size(),
                                    " (byte ", offset, ") is not one of the ", vocab_size(),
                                    " of the vocabulary, which is the training text's."));
    tokens.push_back(id);
  });
  return tokens;
}

std::vector<int32_t> Tokenizer::encode_prompt(std::string_view text, const std::string& where) const {
  if (!subwords_) return encode(text, where);
  std::vector<int32_t> tokens = subwords_->first_tokens();
  const std::vector<int32_t> rest = encode(text, where);
  tokens.insert(tokens.end(), rest.begin(), rest.end());
  return tokens;
}

void Tokenizer::require_token(int32_t token) const {
  if (token < 0 || token >= vocab_size())
    throw DataError("tokenizer", concat("no such token; got ", token, ", expected 0 to ", vocab_size() - 1, "."));
}

std::string Tokenizer::decode(std::span<const int32_t> tokens) const {
  std::for_each(tokens.begin(), tokens.end(), [&](int32_t token) { require_token(token); });
  if (subwords_) return subwords_->decode(tokens);
  std::string text;
  text.reserve(tokens.size());
  for (const int32_t token : tokens) text += bytes_of(token);
  return text;
}

std::string Tokenizer::bytes_of(int32_t token) const {
  require_token(token);
  if (subwords_) return subwords_->bytes_of(token);
  if (kind_ == TokenizerKind::bytes) return {static_cast<char>(token)};
  if (kind_ == TokenizerKind::ids) return concat(' ', token);
  std::string text;
  append_utf8(text, symbols_[static_cast<size_t>(token)]);
  return text;
}

int Tokenizer::vocab_size() const {
  if (padded_size_ > 0) return padded_size_;
  return kind_ == TokenizerKind::bytes ? byte_values : static_cast<int>(symbols_.size());
}

nlohmann::json Tokenizer::to_json() const {
  nlohmann::json json = {{"kind", kind_name()}};
  if (kind_ == TokenizerKind::bytes) return json;
  if (padded_size_ > 0) json["vocab_size"] = padded_size_;
  if (kind_ == TokenizerKind::ids) return json;
  if (subwords_) {
    json["tokenizer"] = subwords_->content();  // as text: a checkpoint gives the file back as it was
    return json;
  }
  std::string symbols;
  for (const char32_t symbol : symbols_) append_utf8(symbols, symbol);
  json["symbols"] = std::move(symbols);  // one string: its n-th character is token n
  return json;
}

Tokenizer Tokenizer::from_json(const nlohmann::json& json) {
  const auto text_of = [&](const char* key) {
    if (!json.is_object() || !json.contains(key) || !json[key].is_string())
      throw DataError("tokenizer",
                      concat("expected an object with the text \"", key, "\". The file is not a tokenizer's."));
    return json[key].get<std::string>();
  };
  const std::string kind = text_of("kind");
  if ((kind == "subword" || kind == "ids") && !json.contains("vocab_size"))
    throw DataError("tokenizer", "has no \"vocab_size\". The file is damaged.");
  if (kind == "byte") return Tokenizer(TokenizerKind::bytes);
  if (kind == "ids") return of_ids(size_in(json, "vocab_size"));
  if (kind == "subword")
    return Tokenizer(SubwordTokenizer(text_of("tokenizer"), "tokenizer")).with_vocab_size(size_in(json, "vocab_size"));
  if (kind != "char")
    throw DataError("tokenizer", concat("unknown kind; got \"", kind, "\", expected char, byte, subword or ids."));

  const std::string text = text_of("symbols");
  require_utf8(text, "tokenizer");
  std::u32string symbols;
  for_each_code_point(text, [&](char32_t code_point, size_t) { symbols += code_point; });
  const bool ascending = std::adjacent_find(symbols.begin(), symbols.end(), std::greater_equal<>()) == symbols.end();
  if (symbols.empty() || !ascending)
    throw DataError("tokenizer",
                    "symbols must be distinct, in ascending order, and at least one. The file is damaged.");
  return Tokenizer(TokenizerKind::characters, std::move(symbols));
}

std::string StreamDecoder::push(int32_t token) {
  pending_ += tokenizer_.bytes_of(token);
  std::string whole;
  while (!pending_.empty()) {
    const Utf8Item item = decode_utf8(pending_, 0);
    if (item.state == Utf8State::truncated) break;
    append_utf8(whole, item.value);
    pending_.erase(0, static_cast<size_t>(item.length));
  }
  return whole;
}

std::string StreamDecoder::finish() {
  std::string rest;
  if (!pending_.empty()) append_utf8(rest, replacement_character);
  pending_.clear();
  return rest;
}

}  // namespace normlab
