// Corpus: a text file, JSONL or token files as tokens.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string_view>

#include "normlab/data/folds.h"
#include "normlab/data/text_reader.h"
#include "normlab/data/tokenizer.h"
#include "normlab/data/tokens.h"

namespace normlab {

struct Corpus {
  Tokenizer tokenizer;
  Tokens tokens;
  std::string sha256;    // of the file: a run resumes only with the text it was started with
  int64_t held_out = 0;  // of token files: so many tokens at the end are held out, whatever the fold
};

// What is held out: the fold, or what the text itself holds out.
Split split_of(const Corpus& corpus, int folds, int fold);

// How large a text is for a plan, in bounded time: of a long one only the beginning is read.
struct CorpusSize {
  int vocab_size = 0;
  int64_t tokens = 0;
  double seconds = 0.0;    // to read the whole
  bool estimated = false;  // from the beginning
};
// `known`: the tokenizer that is given instead of being made from the text; may be null.
CorpusSize measure_corpus(const std::filesystem::path& path, std::string_view kind, const Tokenizer* known = nullptr,
                          const TextForm& form = {});

// A new vocabulary, of the kind "char" or "byte", made from the whole file. The text is taken as it stands: a byte
// order mark or carriage returns are characters like any other. Token files (token_files.h) have ids for a vocabulary,
// unless the kind is "byte". DataError for a file that is missing, empty, not a regular file, or not text where the
// kind needs text. A text of more than form.in_memory bytes is tokenised into the cache (large_text.h).
Corpus load_corpus(const std::filesystem::path& path, std::string_view kind, const TextForm& form = {});

// The vocabulary of a checkpoint, to resume or evaluate; DataError for a character outside it.
Corpus load_corpus(const std::filesystem::path& path, const Tokenizer& tokenizer, const TextForm& form = {});

// DataError for what a tokenizer of this kind cannot read. `given`: it is not made from this text.
void require_text(const std::string& text, const std::string& where, TokenizerKind kind, bool given);

}  // namespace normlab
