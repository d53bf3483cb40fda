// Corpus: a text file as tokens.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string_view>
#include <vector>

#include "normlab/data/batch.h"
#include "normlab/data/tokenizer.h"

namespace normlab {

struct Corpus {
  Tokenizer tokenizer;
  std::vector<int32_t> tokens;
  std::string sha256;  // of the file: a run resumes only with the text it was started with
};

// How much text the targets of some windows are; turns their mean loss in nats per token into bits per byte and per
// character. A byte token is 1/k of a character of k bytes, so that a window may begin or end within one.
struct TextSize {
  int64_t tokens = 0, bytes = 0;
  double characters = 0;  // code points; each ill-formed sequence is one

  double bits_per_byte(double loss) const;
  double bits_per_character(double loss) const;
};
TextSize size_of_targets(const Corpus& corpus, std::span<const EvalWindow> windows);

// How large a text is for a plan, in bounded time: of a long one only the beginning is read.
struct CorpusSize {
  int vocab_size = 0;
  int64_t tokens = 0;
  double seconds = 0.0;    // to read the whole
  bool estimated = false;  // from the beginning
};
// `known`: the tokenizer that is given instead of being made from the text; may be null.
CorpusSize measure_corpus(const std::filesystem::path& path, std::string_view kind, const Tokenizer* known = nullptr);

// A new vocabulary, of the kind "char" or "byte", made from the whole file. The text is taken as it stands: a byte
// order mark or carriage returns are characters like any other. DataError for a file that is missing, empty, not a
// regular file, or not text where the kind needs text.
Corpus load_corpus(const std::filesystem::path& path, std::string_view kind);

// The vocabulary of a checkpoint, to resume or evaluate; DataError for a character outside it.
Corpus load_corpus(const std::filesystem::path& path, const Tokenizer& tokenizer);

}  // namespace normlab
