// Corpus: checks that a file is what its tokenizer can read before any token is made.
#include "normlab/data/corpus.h"

#include <chrono>
#include <string>

#include "normlab/base/error.h"
#include "normlab/base/file.h"
#include "normlab/base/sha256.h"
#include "normlab/base/text.h"
#include "normlab/data/large_text.h"
#include "normlab/data/token_files.h"
#include "normlab/data/utf8.h"

namespace normlab {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view char_kind = tokenizer_kinds[static_cast<int>(TokenizerKind::characters)];
constexpr std::string_view byte_kind = tokenizer_kinds[static_cast<int>(TokenizerKind::bytes)];

// What is asked for: a tokenizer that is known, or a new one of a kind.
struct Wanted {
  std::string_view kind;
  const Tokenizer* known = nullptr;

  bool bytes() const { return (known ? known->kind_name() : kind) == byte_kind; }
};

bool is_tokens(const fs::path& path, const Wanted& wanted) { return !wanted.bytes() && is_token_source(path); }

void require_data_file(const fs::path& path) {
  // A pipe or device could block, never end, or not be there again at resume.
  std::error_code ignored;  // read_file says why a file cannot be read
  if (fs::is_other(fs::status(path, ignored)))
    throw DataError(path.string(), "is not a regular file; expected a text file.");
  if (fs::is_directory(path, ignored))
    throw DataError(path.string(),
                    "is a folder; expected a text file, or train.bin and val.bin in it. For a translator it may be a "
                    "folder of aligned files: set translation.source and translation.target, as in "
                    "recipes/gl-en-small.toml.");
}

constexpr size_t beginning = 16 << 20;  // bytes

// Takes off what is left of a character at the end; how many bytes that was.
size_t cut_to_characters(std::string& text) {
  constexpr size_t longest_character = 4;
  const size_t size = text.size();
  if (const auto cut = first_invalid_utf8(text); cut && *cut + longest_character > size) text.resize(*cut);
  return size - text.size();
}

Corpus make_corpus(const fs::path& path, const std::string& text, std::string sha256, const Wanted& wanted) {
  const std::string where = path.string();
  if (text.empty()) throw DataError(where, "is empty; expected text.");
  if (wanted.known || wanted.kind == char_kind)
    require_text(text, where, wanted.known ? wanted.known->kind() : TokenizerKind::characters, wanted.known);
  const Tokenizer tokenizer = wanted.known ? *wanted.known : Tokenizer::make(wanted.kind, text);
  return {.tokenizer = tokenizer, .tokens = tokenizer.encode(text, where), .sha256 = std::move(sha256)};
}

Corpus load_tokens(const fs::path& path, const Wanted& wanted, const TextForm& form) {
  const TokenFacts facts = look_at_tokens(path, form, INT64_MAX);
  const Tokenizer tokenizer = tokenizer_of_ids(path, facts, form, wanted.known);
  return {.tokenizer = tokenizer,
          .tokens = open_tokens(path, tokenizer.vocab_size()),
          .sha256 = facts.sha256,
          .held_out = facts.held_out};
}

Corpus load(const fs::path& path, const Wanted& wanted, const TextForm& form) {
  if (is_tokens(path, wanted)) return load_tokens(path, wanted, form);
  require_data_file(path);
  std::error_code unknown;
  const uintmax_t size = fs::file_size(path, unknown);
  if (!unknown && size > static_cast<uintmax_t>(form.in_memory))
    return load_large_text(path, wanted.kind, wanted.known, form);
  if (!is_jsonl(path, form)) {
    const std::string text = read_file(path);
    return make_corpus(path, text, sha256_hex(text), wanted);
  }
  TextReader reader(path, form);
  std::string text;
  while (reader.read(text, 1 << 20)) {
  }
  return make_corpus(path, text, reader.sha256(), wanted);
}

CorpusSize measure(const fs::path& path, const Wanted& wanted, const TextForm& form) {
  using Clock = std::chrono::steady_clock;
  const auto start = Clock::now();
  const auto of_whole = [&](int vocab_size, double tokens, double share) {
    const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
    return CorpusSize{vocab_size, static_cast<int64_t>(tokens / share), seconds / share, share < 1.0};
  };
  if (is_tokens(path, wanted)) {
    const TokenFacts facts = look_at_tokens(path, form, beginning);
    const auto tokens = static_cast<double>(facts.train + facts.held_out);
    const double share = static_cast<double>(facts.bytes_looked_at) / (2.0 * tokens);
    CorpusSize size = of_whole(tokenizer_of_ids(path, facts, form, wanted.known).vocab_size(), tokens * share, share);
    size.tokens = facts.train + facts.held_out;
    return size;
  }
  require_data_file(path);
  std::error_code unknown;
  const uintmax_t size = fs::file_size(path, unknown);
  if (unknown || size <= beginning) {
    TextForm held = form;
    held.in_memory = beginning;
    const Corpus corpus = load(path, wanted, held);
    return of_whole(corpus.tokenizer.vocab_size(), static_cast<double>(corpus.tokens.size()), 1.0);
  }
  TextReader reader(path, form);
  std::string text;
  reader.read(text, beginning);
  const size_t left_out = cut_to_characters(text);
  const Corpus corpus = make_corpus(path, text, "", wanted);
  const double share =
      (static_cast<double>(reader.bytes_read()) - static_cast<double>(left_out)) / static_cast<double>(size);
  return of_whole(corpus.tokenizer.vocab_size(), static_cast<double>(corpus.tokens.size()), share);
}

}  // namespace

void require_text(const std::string& text, const std::string& where, TokenizerKind kind, bool given) {
  if (kind != TokenizerKind::characters) return;
  const char* hint = given ? "The model's vocabulary is of characters: give the text it was trained on."
                           : "Convert it to UTF-8, or set data.tokenizer=byte.";
  if (text.starts_with("\x1f\x8b"))
    throw DataError(where, "is packed by gzip; expected UTF-8 text. Unpack it first, with gunzip.");
  if (const size_t nul = text.find('\0'); nul != std::string::npos)
    throw DataError(where, concat("is binary, with a NUL at byte ", nul, "; expected UTF-8 text. ", hint));
  if (const auto offset = first_invalid_utf8(text))
    throw DataError(where, concat("is not valid UTF-8 at byte ", *offset, "; expected UTF-8 text. ", hint));
}

Split split_of(const Corpus& corpus, int folds, int fold) {
  const auto size = static_cast<int64_t>(corpus.tokens.size());
  if (corpus.held_out == 0) return make_split(size, folds, fold);
  return {.train = {{0, size - corpus.held_out}}, .held_out = {size - corpus.held_out, size}};
}

Corpus load_corpus(const fs::path& path, std::string_view kind, const TextForm& form) {
  return load(path, {.kind = kind}, form);
}

Corpus load_corpus(const fs::path& path, const Tokenizer& tokenizer, const TextForm& form) {
  return load(path, {.kind = tokenizer.kind_name(), .known = &tokenizer}, form);
}

CorpusSize measure_corpus(const fs::path& path, std::string_view kind, const Tokenizer* known, const TextForm& form) {
  return measure(path, {.kind = kind, .known = known}, form);
}

}  // namespace normlab
