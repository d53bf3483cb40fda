// A byte-level tokenizer as GGUF's metadata.
#pragma once

#include <vector>

#include "normlab/data/tokenizer.h"
#include "normlab/record/gguf.h"

namespace normlab {

// The keys tokenizer.ggml.*, with as many tokens as the model has rows. UsageError, with the reason, for a tokenizer
// that llama.cpp would read otherwise.
std::vector<GgufPair> gguf_tokenizer(const Tokenizer& tokenizer);

}  // namespace normlab
