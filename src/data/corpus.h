// Corpus: a text file as tokens.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string_view>
#include <vector>

#include "data/tokenizer.h"

namespace normlab {

struct Corpus {
  Tokenizer tokenizer;
  std::vector<int32_t> tokens;
  double bytes_per_token = 1;       // of the file: turns nats per token into bits per byte
  double characters_per_token = 1;  // likewise, of its code points
  std::string sha256;               // of the file: a run goes on only with the text it was started with
};

// A new vocabulary, of the kind "char" or "byte", made from the whole file. The text is taken as it stands: a byte
// order mark or carriage returns are characters like any other. DataError for a file that is missing, empty, not a
// regular file, or not text where the kind needs text.
Corpus load_corpus(const std::filesystem::path& path, std::string_view kind);

// The vocabulary of a checkpoint, to resume or evaluate; DataError for a character outside it.
Corpus load_corpus(const std::filesystem::path& path, const Tokenizer& tokenizer);

}  // namespace normlab
