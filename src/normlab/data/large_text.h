// Texts larger than the memory: tokenised once into the user's cache, and read from there.
#pragma once

#include "normlab/data/corpus.h"

namespace normlab {

// As load_corpus does it, with the same tokens. `known`: the tokenizer that is given; null: one of the kind "char" or
// "byte", made from the text.
Corpus load_large_text(const std::filesystem::path& path, std::string_view kind, const Tokenizer* known,
                       const TextForm& form);

}  // namespace normlab
