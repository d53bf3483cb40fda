// Batches of sentence pairs by a budget of tokens: which pairs are in which batch of an epoch, and in which order.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace normlab {

// Tokens of a pair as the model reads them, marks of begin and end included.
struct PairLengths {
  int64_t source = 0, target = 0;
};

enum class PairBatching {
  fixed,     // sorted by source length and cut once; only the order of batches changes (the QKNorm authors' way)
  bucketed,  // pairs of similar length, drawn anew in every epoch
};
inline constexpr std::string_view pair_batchings[] = {"fixed", "bucketed"};  // in the order of the enumerators

struct PairBatchPlan {
  uint64_t seed = 0;
  int64_t tokens_per_batch = 4096;  // pairs x the longest side of any of them, padding included
  PairBatching batching = PairBatching::fixed;
};

using PairBatch = std::vector<size_t>;  // numbers of pairs

// Every pair once: a pure function of (seed, epoch). A pair that is longer than the budget is a batch of its own.
std::vector<PairBatch> pair_batches(std::span<const PairLengths> lengths, const PairBatchPlan& plan, int64_t epoch);

}  // namespace normlab
