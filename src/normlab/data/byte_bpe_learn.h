// Learning of byte-level byte pair encoding: the tokenizer.json that the tokenizers package learns from the same text.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "normlab/data/bpe_learn.h"

namespace normlab {

inline constexpr const char* end_of_text = "<|endoftext|>";

// Words are those of GPT-2's pattern. The vocabulary is <|endoftext|>, the 256 bytes and one token per merge.
// `progress` is told the number of merges learned so far.
std::string learn_tokenizer_json(const std::vector<std::string>& texts, const BpeLearning& options,
                                 const std::function<void(int)>& progress = nullptr);

}  // namespace normlab
