// Translations drawn at random, symbol by symbol, instead of searched for.
#pragma once

#include <cstdint>
#include <string>

#include "normlab/data/pair_vocabulary.h"
#include "normlab/infer/sample.h"
#include "normlab/models/translate.h"

namespace normlab {

// Of line number `line` of a text: the draws are a function of the seed and of it. SampleOptions::max_tokens is not
// read: the length is limited as in a search.
TranslatedLine sample_translation(const EncoderDecoder& model, PairVocabulary& vocabulary, const std::string& text,
                                  const SampleOptions& options, int64_t line);

}  // namespace normlab
