// Lines of text to lines of text, by beam search: the one way of training's evaluation and of `normlab translate`.
#pragma once

#include <string>
#include <vector>

#include "normlab/data/pair_vocabulary.h"
#include "normlab/models/beam_search.h"

namespace normlab {

struct TranslatedLine {
  struct Alternative {
    std::string text;
    double score = 0.0;
    int64_t symbols = 0;  // of the search, the end mark included
  };
  std::vector<Alternative> alternatives;  // the best first; none for an empty line
  int64_t tokens_left_out = 0;            // of a line that the model cannot read to its end
};

// The subwords of a line with the end mark, cut where the model's positions end; empty for an empty line.
std::vector<int32_t> read_source(PairVocabulary& vocabulary, const std::string& line, int64_t seq_len,
                                 TranslatedLine& out);
// Most symbols of its translation.
int64_t longest_translation(int64_t source_tokens, int64_t seq_len);

// Sources as the model reads them, padded to one length.
SourceBatch make_source_batch(const std::vector<std::vector<int32_t>>& sources);

// Up to `batch_size` lines of similar length at a time. No lines when the search was stopped.
std::vector<TranslatedLine> translate_lines(const EncoderDecoder& model, PairVocabulary& vocabulary,
                                            const std::vector<std::string>& lines, const BeamOptions& options,
                                            size_t batch_size);

}  // namespace normlab
