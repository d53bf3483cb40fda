// Learning of byte pair encoding: the merges that subword-nmt 0.3.8 learns from the same words.
#pragma once

#include <functional>

#include "normlab/data/bpe.h"

namespace normlab {

struct BpeLearning {
  int operations = 8000;      // merges at most
  int64_t min_frequency = 2;  // a rarer pair ends the learning
};

// `progress` is told the number of merges learned so far.
BpeCodes learn_bpe(const WordCounts& words, const BpeLearning& options,
                   const std::function<void(int)>& progress = nullptr);

}  // namespace normlab
