// Folds, batches and windows of any size: what holds for every text, and not only for those of the other tests.
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <numeric>

#include "normlab/data/batch.h"
#include "normlab/data/folds.h"
#include "normlab/data/pair_batch.h"

namespace normlab {
namespace {

// The ranges in order and without gap or overlap.
void expect_partition(std::vector<TokenRange> ranges, int64_t n_tokens) {
  std::sort(ranges.begin(), ranges.end(), [](const auto& a, const auto& b) { return a.begin < b.begin; });
  int64_t reached = 0;
  for (const TokenRange& range : ranges) {
    RC_ASSERT(range.begin == reached);
    RC_ASSERT(range.end >= range.begin);
    reached = range.end;
  }
  RC_ASSERT(reached == n_tokens);
}

struct Text {
  int64_t n_tokens = 0;
  int folds = 0, fold = 0;
};
Text any_text() {
  const int folds = *rc::gen::inRange(2, 20);
  return {.n_tokens = *rc::gen::inRange<int64_t>(folds, 2000), .folds = folds, .fold = *rc::gen::inRange(0, folds)};
}

TEST(FoldProperties, HeldOutBlocksPartitionTheText) {
  EXPECT_TRUE(rc::check([] {
    const Text text = any_text();
    std::vector<TokenRange> held_out;
    for (int fold = 0; fold < text.folds; ++fold)
      held_out.push_back(make_split(text.n_tokens, text.folds, fold).held_out);
    expect_partition(held_out, text.n_tokens);
    const auto [least, most] = std::minmax_element(held_out.begin(), held_out.end(),
                                                   [](const auto& a, const auto& b) { return a.size() < b.size(); });
    RC_ASSERT(most->size() - least->size() <= 1);
  }));
}

TEST(FoldProperties, TrainingTextAndHeldOutBlockPartitionTheText) {
  EXPECT_TRUE(rc::check([] {
    const Text text = any_text();
    const Split split = make_split(text.n_tokens, text.folds, text.fold);
    std::vector<TokenRange> all = split.train;
    all.push_back(split.held_out);
    expect_partition(all, text.n_tokens);
  }));
}

TEST(FoldProperties, NoWindowCrossesTheHeldOutBlock) {
  EXPECT_TRUE(rc::check([] {
    const Text text = any_text();
    const Split split = make_split(text.n_tokens, text.folds, text.fold);
    const int64_t longest = std::max_element(split.train.begin(), split.train.end(), [](const auto& a, const auto& b) {
                              return a.size() < b.size();
                            })->size();
    RC_PRE(longest > 1);
    const auto seq_len = static_cast<int>(*rc::gen::inRange<int64_t>(1, longest));  // up to where one window fits
    const BatchPlan plan{.seed = *rc::gen::arbitrary<uint64_t>(),
                         .fold = text.fold,
                         .batch_size = *rc::gen::inRange(1, 9),
                         .seq_len = seq_len};
    std::vector<int32_t> tokens(static_cast<size_t>(text.n_tokens));
    std::iota(tokens.begin(), tokens.end(), 0);  // token i is i, so that a batch shows where it was read
    const auto length = static_cast<size_t>(seq_len), size = static_cast<size_t>(plan.batch_size) * length;
    std::vector<int64_t> inputs(size), targets(size);
    fill_batch(plan, tokens, split, *rc::gen::inRange<int64_t>(0, 1'000'000), inputs, targets);
    for (size_t row = 0; row < size; row += length) {
      const int64_t first = inputs[row], last = targets[row + length - 1];
      RC_ASSERT(last == first + seq_len);
      RC_ASSERT(std::any_of(split.train.begin(), split.train.end(),
                            [&](const TokenRange& range) { return range.begin <= first && last < range.end; }));
    }
  }));
}

TEST(WindowProperties, EveryTokenButTheFirstIsPredictedOnce) {
  EXPECT_TRUE(rc::check([] {
    const auto begin = *rc::gen::inRange<int64_t>(0, 100), size = *rc::gen::inRange<int64_t>(0, 600);
    std::vector<int> predicted(static_cast<size_t>(begin + size), 0);
    for (const EvalWindow& window : eval_windows({begin, begin + size}, *rc::gen::inRange(1, 700), 0))
      for (int i = 1; i <= window.length; ++i) ++predicted.at(static_cast<size_t>(window.begin + i));
    for (size_t i = 0; i < predicted.size(); ++i) RC_ASSERT(predicted[i] == (static_cast<int64_t>(i) > begin));
  }));
}

TEST(PairBatchProperties, AnEpochHasEveryPairOnceWithinTheBudget) {
  EXPECT_TRUE(rc::check([] {
    const PairBatchPlan plan{.seed = *rc::gen::arbitrary<uint64_t>(),
                             .tokens_per_batch = *rc::gen::inRange<int64_t>(1, 60),
                             .batching = *rc::gen::element(PairBatching::fixed, PairBatching::bucketed)};
    const auto sizes = *rc::gen::container<std::vector<std::pair<int64_t, int64_t>>>(
        rc::gen::pair(rc::gen::inRange<int64_t>(1, 30), rc::gen::inRange<int64_t>(1, 30)));
    std::vector<PairLengths> lengths;
    for (const auto& [source, target] : sizes) lengths.push_back({source, target});
    const int64_t epoch = *rc::gen::inRange<int64_t>(0, 50);
    std::vector<int> seen(lengths.size(), 0);
    for (const PairBatch& batch : pair_batches(lengths, plan, epoch)) {
      RC_ASSERT(!batch.empty());
      int64_t longest = 0;
      for (const size_t pair : batch) {
        ++seen.at(pair);
        longest = std::max({longest, lengths[pair].source, lengths[pair].target});
      }
      RC_ASSERT(batch.size() == 1 || static_cast<int64_t>(batch.size()) * longest <= plan.tokens_per_batch);
    }
    RC_ASSERT(std::all_of(seen.begin(), seen.end(), [](int count) { return count == 1; }));
    RC_ASSERT(pair_batches(lengths, plan, epoch) == pair_batches(lengths, plan, epoch));
  }));
}

}  // namespace
}  // namespace normlab
