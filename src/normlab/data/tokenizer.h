// Tokenizer: text to token ids and back, by characters, by bytes or by the subwords of a tokenizer.json; or ids alone,
// which are then written as numbers. A value type that a checkpoint stores as JSON.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace normlab {

class SubwordTokenizer;

enum class TokenizerKind { characters, bytes, subwords, ids };
// In the order of the enumerators.
inline constexpr std::string_view tokenizer_kinds[] = {"char", "byte", "subword", "ids"};

class Tokenizer {
 public:
  // "char": the sorted set of code points of `text`, as in nanoGPT; "byte": the 256 byte values, whatever the text.
  static Tokenizer make(std::string_view kind, std::string_view text);
  // A tokenizer.json of Hugging Face, or of a checkpoint.
  static Tokenizer read_subwords(const std::filesystem::path& path);
  // By characters: these, in ascending order.
  static Tokenizer of_characters(std::u32string symbols);
  // Of token files that came without a tokenizer: a text is the numbers of its tokens.
  static Tokenizer of_ids(int vocab_size);
  static Tokenizer from_json(const nlohmann::json& json);
  nlohmann::json to_json() const;

  // `where` names the text in the DataError about a character outside the vocabulary or bytes that are not UTF-8.
  std::vector<int32_t> encode(std::string_view text, const std::string& where = "text") const;
  // The same for a text that is to be continued: with what a tokenizer.json puts before it.
  std::vector<int32_t> encode_prompt(std::string_view text, const std::string& where) const;
  // Byte tokens give the bytes as they are, UTF-8 or not; StreamDecoder is for output that must be UTF-8.
  std::string decode(std::span<const int32_t> tokens) const;
  // The bytes of one token that follows others.
  std::string bytes_of(int32_t token) const;

  TokenizerKind kind() const { return kind_; }
  std::string_view kind_name() const { return tokenizer_kinds[static_cast<int>(kind_)]; }
  int vocab_size() const;
  // With ids up to this size, of which the last have no text: models often have more rows than tokens.
  Tokenizer with_vocab_size(int size) const;
  const SubwordTokenizer* subwords() const { return subwords_.get(); }  // null: characters or bytes
  bool operator==(const Tokenizer& other) const;

 private:
  explicit Tokenizer(TokenizerKind kind, std::u32string symbols = {});
  explicit Tokenizer(SubwordTokenizer subwords);
  void require_token(int32_t token) const;

  TokenizerKind kind_;
  std::u32string symbols_;      // the code point of each id, ascending; empty for bytes
  std::vector<int32_t> id_of_;  // by code point up to the largest symbol, -1 for none
  std::shared_ptr<const SubwordTokenizer> subwords_;
  int padded_size_ = 0;  // of a vocabulary of subwords or ids
};

// The different characters of a text that comes in parts.
class CharacterSet {
 public:
  void add(std::string_view text);                      // requires UTF-8
  Tokenizer tokenizer(const std::string& where) const;  // DataError when there are none

 private:
  std::vector<bool> seen_;
};

// Decodes token by token and gives out whole characters only; ill-formed bytes become U+FFFD.
class StreamDecoder {
 public:
  explicit StreamDecoder(Tokenizer tokenizer) : tokenizer_(std::move(tokenizer)) {}
  std::string push(int32_t token);  // the characters that are complete now, often one or none
  std::string finish();             // U+FFFD when a character was left incomplete

 private:
  Tokenizer tokenizer_;
  std::string pending_;  // the first bytes of a character
};

}  // namespace normlab
