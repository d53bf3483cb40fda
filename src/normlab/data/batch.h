// Batches: which windows of the text a training step and an evaluation read.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "normlab/data/folds.h"
#include "normlab/data/tokens.h"

namespace normlab {

struct BatchPlan {
  uint64_t seed = 0;
  int fold = 0;
  int batch_size = 1;
  int seq_len = 1;
};

// Fills batch_size rows of seq_len inputs, and the targets one token further on. Windows are drawn uniformly, with
// replacement, over all starts at which one fits into a training segment: a pure function of (seed, fold, step).
void fill_batch(const BatchPlan& plan, const Tokens& tokens, const Split& split, int64_t step,
                std::span<int64_t> inputs, std::span<int64_t> targets);

// Inputs begin .. begin + length - 1, targets one further on.
struct EvalWindow {
  int64_t begin = 0;
  int length = 0;
  bool operator==(const EvalWindow&) const = default;
};

// max_windows = 0: consecutive windows, the last one shorter, that predict each token but the first exactly once.
// Otherwise that many whole windows of these, spread evenly; all of them when there are fewer.
std::vector<EvalWindow> eval_windows(TokenRange segment, int seq_len, int max_windows);

}  // namespace normlab
