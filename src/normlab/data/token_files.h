// Token files as nanoGPT writes them: train.bin and val.bin, ids of two bytes each.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "normlab/data/text_reader.h"
#include "normlab/data/tokenizer.h"
#include "normlab/data/tokens.h"

namespace normlab {

// A folder with train.bin, or a file whose name ends in .bin.
bool is_token_source(const std::filesystem::path& path);

struct TokenFacts {
  int64_t train = 0, held_out = 0;  // tokens; held_out 0: one file, which folds split
  int64_t bytes_looked_at = 0;
  int largest = 0;     // id, in what was looked at
  std::string sha256;  // of one file, or of the sums of both
};
// DataError for a file that is missing, empty, no regular file or of an odd size. `most`: bytes of each file to look
// at.
TokenFacts look_at_tokens(const std::filesystem::path& path, const TextForm& form, int64_t most);

// The vocabulary: `known`, or else ids; DataError when the largest id is beyond it.
Tokenizer tokenizer_of_ids(const std::filesystem::path& path, const TokenFacts& facts, const TextForm& form,
                           const Tokenizer* known);
Tokens open_tokens(const std::filesystem::path& path, int vocab_size);

}  // namespace normlab
