// SubwordTokenizer: the tokenizer.json of Hugging Face, with byte pair encoding on bytes or, as SentencePiece's, on
// characters. Token ids equal those of the tokenizers package.
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "normlab/data/added_tokens.h"
#include "normlab/data/bpe_model.h"
#include "normlab/data/pre_tokenizer.h"
#include "normlab/data/subword_decoder.h"
#include "normlab/data/subword_normalizer.h"

namespace normlab {

class SubwordTokenizer {
 public:
  // The content of a tokenizer.json; DataError, with `where`, for what is damaged or not supported.
  SubwordTokenizer(std::string content, const std::string& where);
  static SubwordTokenizer read(const std::filesystem::path& path);

  // Without the special tokens that the file puts around a text. DataError, with `where`, for text that is not UTF-8.
  std::vector<int32_t> encode(std::string_view text, const std::string& where) const;
  // The same for a text that comes in parts, cut where it can be.
  enum class Part { first, later };
  std::vector<int32_t> encode(std::string_view text, const std::string& where, Part part, BpeModel::Cache& cache) const;
  // Whether the tokens of the text are those of its parts before and after `at`.
  bool can_cut(std::string_view text, size_t at) const;
  // What the file puts before a text, such as a token that begins it.
  const std::vector<int32_t>& first_tokens() const { return first_tokens_; }

  std::string decode(std::span<const int32_t> tokens) const;
  // The bytes of a token that follows others; none for an id without a token.
  const std::string& bytes_of(int32_t token) const;

  int vocab_size() const { return static_cast<int>(texts_.size()); }  // the largest id and one
  const std::string& content() const { return content_; }             // of the file, as it was

 private:
  void read_added_tokens(const nlohmann::json& list, const std::string& where);
  void read_first_tokens(const nlohmann::json& processor);
  void read_texts(const std::string& where);

  std::string content_;
  SubwordNormalizer normalizer_;
  PreTokenizer pre_tokenizer_;
  BpeModel model_;
  SubwordDecoder decoder_;
  std::vector<AddedToken> added_;
  AddedTokenFinder in_text_, in_normalized_;
  std::vector<int32_t> first_tokens_;
  std::vector<std::string> texts_, bytes_;  // by id; empty: none
};

}  // namespace normlab
