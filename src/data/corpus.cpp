// Corpus: checks that a file is what its tokenizer can read before any token is made.
#include "data/corpus.h"

#include <string>

#include "base/error.h"
#include "base/file.h"
#include "base/sha256.h"
#include "base/text.h"
#include "data/utf8.h"

namespace normlab {
namespace {

namespace fs = std::filesystem;

std::string read_data_file(const fs::path& path) {
  // A pipe or device could block, never end, or not be there again at resume.
  std::error_code ignored;  // read_file says why a file cannot be read
  if (fs::is_other(fs::status(path, ignored)))
    throw DataError(path.string(), "is not a regular file; expected a text file.");
  std::string text = read_file(path);
  if (text.empty()) throw DataError(path.string(), "is empty; expected text.");
  return text;
}

void require_characters(const std::string& text, const std::string& where, std::string_view hint) {
  if (const size_t nul = text.find('\0'); nul != std::string::npos)
    throw DataError(where, str("is binary, with a NUL at byte ", nul, "; expected UTF-8 text. ", hint));
  if (const auto offset = first_invalid_utf8(text))
    throw DataError(where, str("is not valid UTF-8 at byte ", *offset, "; expected UTF-8 text. ", hint));
}

Corpus make_corpus(const Tokenizer& tokenizer, const std::string& text, const std::string& where) {
  Corpus corpus{.tokenizer = tokenizer, .tokens = tokenizer.encode(text, where), .sha256 = sha256_hex(text)};
  int64_t characters = 0;
  for_each_code_point(text, [&characters](char32_t, size_t) { ++characters; });
  const auto tokens = static_cast<double>(corpus.tokens.size());
  corpus.bytes_per_token = static_cast<double>(text.size()) / tokens;
  corpus.characters_per_token = static_cast<double>(characters) / tokens;
  return corpus;
}

}  // namespace

Corpus load_corpus(const fs::path& path, std::string_view kind) {
  const std::string text = read_data_file(path);
  if (kind == tokenizer_kinds[static_cast<int>(TokenizerKind::characters)])
    require_characters(text, path.string(), "Convert it to UTF-8, or set data.tokenizer=byte.");
  return make_corpus(Tokenizer::make(kind, text), text, path.string());
}

Corpus load_corpus(const fs::path& path, const Tokenizer& tokenizer) {
  const std::string text = read_data_file(path);
  if (tokenizer.kind() == TokenizerKind::characters)
    require_characters(text, path.string(),
                       "The model's vocabulary is of characters: give the text it was trained on.");
  return make_corpus(tokenizer, text, path.string());
}

}  // namespace normlab
