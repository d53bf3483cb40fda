// Corpus: checks that a file is what its tokenizer can read before any token is made.
#include "normlab/data/corpus.h"

#include <algorithm>
#include <chrono>
#include <numbers>
#include <string>

#include "normlab/base/error.h"
#include "normlab/base/file.h"
#include "normlab/base/sha256.h"
#include "normlab/base/text.h"
#include "normlab/data/utf8.h"

namespace normlab {
namespace {

namespace fs = std::filesystem;

void require_data_file(const fs::path& path) {
  // A pipe or device could block, never end, or not be there again at resume.
  std::error_code ignored;  // read_file says why a file cannot be read
  if (fs::is_other(fs::status(path, ignored)))
    throw DataError(path.string(), "is not a regular file; expected a text file.");
  if (fs::is_directory(path, ignored))
    throw DataError(path.string(),
                    "is a folder; expected a text file. For a translator it may be a folder of aligned files: set "
                    "translation.source and translation.target, as in recipes/gl-en-small.toml.");
}

std::string read_data_file(const fs::path& path) {
  require_data_file(path);
  std::string text = read_file(path);
  if (text.empty()) throw DataError(path.string(), "is empty; expected text.");
  return text;
}

constexpr size_t beginning = 16 << 20;  // bytes

// Whole characters, where the text has any.
std::string read_beginning(const fs::path& path) {
  File file = File::open_to_read(path);
  std::string text(beginning, '\0');
  size_t used = 0;
  while (const size_t count = file.read(text.data() + used, text.size() - used)) used += count;
  text.resize(used);
  constexpr size_t longest_character = 4;
  if (const auto cut = first_invalid_utf8(text); cut && *cut + longest_character > text.size()) text.resize(*cut);
  return text;
}

constexpr std::string_view hint_for_bytes = "Convert it to UTF-8, or set data.tokenizer=byte.";

void require_characters(const std::string& text, const std::string& where, std::string_view hint) {
  if (const size_t nul = text.find('\0'); nul != std::string::npos)
    throw DataError(where, concat("is binary, with a NUL at byte ", nul, "; expected UTF-8 text. ", hint));
  if (const auto offset = first_invalid_utf8(text))
    throw DataError(where, concat("is not valid UTF-8 at byte ", *offset, "; expected UTF-8 text. ", hint));
}

Corpus make_corpus(const Tokenizer& tokenizer, const std::string& text, const std::string& where) {
  return {.tokenizer = tokenizer, .tokens = tokenizer.encode(text, where), .sha256 = sha256_hex(text)};
}

// The bytes of each token of the vocabulary.
std::vector<int64_t> token_bytes(const Tokenizer& tokenizer) {
  std::vector<int64_t> bytes;
  for (int32_t token = 0; token < tokenizer.vocab_size(); ++token)
    bytes.push_back(static_cast<int64_t>(tokenizer.bytes_of(token).size()));
  return bytes;
}

// The characters of each token: those that begin in it.
std::vector<double> token_characters(const Tokenizer& tokenizer) {
  std::vector<double> characters;
  for (int32_t token = 0; token < tokenizer.vocab_size(); ++token) {
    const std::string bytes = tokenizer.bytes_of(token);
    const auto within = [](char byte) { return (static_cast<uint8_t>(byte) & 0xC0) == 0x80; };
    characters.push_back(static_cast<double>(bytes.size()) -
                         static_cast<double>(std::count_if(bytes.begin(), bytes.end(), within)));
  }
  return characters;
}

// Of each byte of the text, how many bytes the character has that it belongs to.
std::vector<uint8_t> character_lengths(std::string_view text) {
  std::vector<uint8_t> lengths;
  lengths.reserve(text.size());
  while (lengths.size() < text.size()) {
    const int length = decode_utf8(text, lengths.size()).length;
    lengths.insert(lengths.end(), static_cast<size_t>(length), static_cast<uint8_t>(length));
  }
  return lengths;
}

}  // namespace

Corpus load_corpus(const fs::path& path, std::string_view kind) {
  const std::string text = read_data_file(path);
  if (kind == tokenizer_kinds[static_cast<int>(TokenizerKind::characters)])
    require_characters(text, path.string(), hint_for_bytes);
  return make_corpus(Tokenizer::make(kind, text), text, path.string());
}

CorpusSize measure_corpus(const fs::path& path, std::string_view kind, const Tokenizer* known) {
  using Clock = std::chrono::steady_clock;
  const auto start = Clock::now();
  require_data_file(path);
  const auto of_whole = [&](const Tokenizer& tokenizer, double tokens, double share) {
    const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
    return CorpusSize{tokenizer.vocab_size(), static_cast<int64_t>(tokens / share), seconds / share, share < 1.0};
  };
  std::error_code unknown;  // of a pipe, which is read to its end
  const uintmax_t size = fs::file_size(path, unknown);
  if (unknown || size <= beginning) {
    const Corpus corpus = known ? load_corpus(path, *known) : load_corpus(path, kind);
    return of_whole(corpus.tokenizer, static_cast<double>(corpus.tokens.size()), 1.0);
  }
  const std::string text = read_beginning(path);
  if (kind == tokenizer_kinds[static_cast<int>(TokenizerKind::characters)])
    require_characters(text, path.string(), hint_for_bytes);
  const Corpus corpus = make_corpus(known ? *known : Tokenizer::make(kind, text), text, path.string());
  return of_whole(corpus.tokenizer, static_cast<double>(corpus.tokens.size()),
                  static_cast<double>(text.size()) / static_cast<double>(size));
}

Corpus load_corpus(const fs::path& path, const Tokenizer& tokenizer) {
  const std::string text = read_data_file(path);
  if (tokenizer.kind() == TokenizerKind::characters)
    require_characters(text, path.string(),
                       "The model's vocabulary is of characters: give the text it was trained on.");
  return make_corpus(tokenizer, text, path.string());
}

double TextSize::bits_per_byte(double loss) const {
  return loss / std::numbers::ln2 * static_cast<double>(tokens) / static_cast<double>(bytes);
}
double TextSize::bits_per_character(double loss) const {
  return loss / std::numbers::ln2 * static_cast<double>(tokens) / characters;
}

TextSize size_of_targets(const Corpus& corpus, std::span<const EvalWindow> windows) {
  const bool by_byte = corpus.tokenizer.kind() == TokenizerKind::bytes;
  const std::vector<int64_t> bytes = token_bytes(corpus.tokenizer);
  const std::vector<uint8_t> lengths =
      by_byte ? character_lengths(corpus.tokenizer.decode(corpus.tokens)) : std::vector<uint8_t>();
  const std::vector<double> characters = token_characters(corpus.tokenizer);
  TextSize size;
  for (const EvalWindow& window : windows)
    for (auto target = static_cast<size_t>(window.begin + 1);
         target <= static_cast<size_t>(window.begin + window.length); ++target) {
      ++size.tokens;
      size.bytes += bytes[static_cast<size_t>(corpus.tokens[target])];
      size.characters += by_byte ? 1.0 / lengths[target] : characters[static_cast<size_t>(corpus.tokens[target])];
    }
  return size;
}

}  // namespace normlab
