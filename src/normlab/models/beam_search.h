// Beam search with a translator: the best translations by log-probability over a penalty for length.
//
//   score = log p(y) / ((5 + |y|) / 6)^length_penalty          Wu et al. 2016, arXiv 1609.08144, as the QKNorm code has
//   it
//
// The first symbol may not be the end. A finished hypothesis keeps its score and its place in the beam until all of a
// sentence's hypotheses are finished or as long as allowed. With the fused kernels the bits of a result do not depend
// on what is translated beside it.
#pragma once

#include <vector>

#include "normlab/base/stop.h"
#include "normlab/models/encoder_decoder.h"

namespace normlab {

struct BeamOptions {
  int beam = 4;                 // 1: greedy
  double length_penalty = 0.6;  // 0: none
  StopToken stop = never_stop;  // asked before each symbol
};

struct Hypothesis {
  std::vector<int32_t> symbols;  // ids; the last is the end mark, unless the limit came first
  double score = 0.0;
};

struct BeamMarks {
  int32_t begin = 1, end = 2;
};

// What is to be translated, and into what.
struct BeamTask {
  SourceBatch source;
  int64_t target_language = 1;
  OutputVocabulary outputs;
  std::vector<int64_t> limits;  // most symbols of each sentence's translations, at least 1
  BeamMarks marks = {};
};

// Of each sentence at most `beam` hypotheses, the best first. Empty when it was stopped.
std::vector<std::vector<Hypothesis>> beam_search(const EncoderDecoder& model, const BeamTask& task,
                                                 const BeamOptions& options);

}  // namespace normlab
