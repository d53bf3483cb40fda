// The text that a configuration names.
#pragma once

#include "normlab/config/config.h"
#include "normlab/data/corpus.h"
#include "normlab/data/translation_data.h"

namespace normlab {

// Of a language model; DataError when no window fits into one of its parts.
// `stop` ends a long tokenisation with Exit::stopped.
Corpus load_text(const Config& config, const StopToken& stop = never_stop);

// How the configuration says that a text is read.
TextForm form_of(const Config& config, const StopToken& stop = never_stop);

// About how many tokens are held out, without reading the text.
int64_t guess_held_out(const Config& config);

// What a plan needs to know of the text, in bounded time; `tokens` and `seconds` are those of a language model's.
CorpusSize measure_text(const Config& config);

// Of a translator.
TranslationFiles files_of(const Config& config);
TranslationData load_pairs(const Config& config);

}  // namespace normlab
