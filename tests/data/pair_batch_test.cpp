// Batches of pairs: every pair once, within the budget, and a pure function of seed and epoch.
#include "normlab/data/pair_batch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "normlab/base/error.h"
#include "normlab/base/random.h"

namespace normlab {
namespace {

using testing::ElementsAre;

std::vector<PairLengths> some_lengths(size_t n = 500) {
  std::vector<PairLengths> lengths;
  for (size_t i = 0; i < n; ++i) {
    const auto source = static_cast<int64_t>(1 + draw_below(5, i, 60));
    lengths.push_back({source, std::max<int64_t>(1, source + static_cast<int64_t>(draw_below(6, i, 11)) - 5)});
  }
  return lengths;
}

PairBatchPlan plan_of(PairBatching batching, uint64_t seed = 1) {
  return {.seed = seed, .tokens_per_batch = 256, .batching = batching};
}

std::set<PairBatch> as_set(const std::vector<PairBatch>& batches) { return {batches.begin(), batches.end()}; }

class EachBatching : public testing::TestWithParam<PairBatching> {};
INSTANTIATE_TEST_SUITE_P(PairBatch, EachBatching, testing::Values(PairBatching::fixed, PairBatching::bucketed));

TEST_P(EachBatching, HoldsEveryPairOnceWithinTheBudget) {
  const auto lengths = some_lengths();
  std::vector<size_t> seen;
  int64_t padded = 0, tokens = 0;
  for (const PairBatch& batch : pair_batches(lengths, plan_of(GetParam()), 0)) {
    ASSERT_FALSE(batch.empty());
    int64_t longest = 0;
    for (const size_t number : batch) {
      longest = std::max({longest, lengths[number].source, lengths[number].target});
      tokens += std::max(lengths[number].source, lengths[number].target);
      seen.push_back(number);
    }
    EXPECT_LE(static_cast<int64_t>(batch.size()) * longest, 256);
    padded += static_cast<int64_t>(batch.size()) * longest;
  }
  std::ranges::sort(seen);
  EXPECT_EQ(seen.size(), lengths.size());
  EXPECT_EQ(std::ranges::adjacent_find(seen), seen.end());
  EXPECT_LT(static_cast<double>(padded) / static_cast<double>(tokens), 1.25);  // pairs of a batch are alike
}

TEST_P(EachBatching, IsAPureFunctionOfSeedAndEpoch) {
  const auto lengths = some_lengths();
  const auto batches = [&](uint64_t seed, int64_t epoch) {
    return pair_batches(lengths, plan_of(GetParam(), seed), epoch);
  };
  EXPECT_EQ(batches(1, 0), batches(1, 0));
  EXPECT_NE(batches(1, 0), batches(1, 1));
  EXPECT_NE(batches(1, 0), batches(2, 0));
}

TEST(PairBatch, FixedOnlyReordersBatches) {
  const auto lengths = some_lengths();
  const auto batches = [&](PairBatching batching, int64_t epoch) {
    return as_set(pair_batches(lengths, plan_of(batching), epoch));
  };
  EXPECT_EQ(batches(PairBatching::fixed, 0), batches(PairBatching::fixed, 1));
  EXPECT_NE(batches(PairBatching::bucketed, 0), batches(PairBatching::bucketed, 1));
}

// By source length, then 3 x 3 = 9 fits into 10, a fourth pair of length 3 does not; the longest side counts.
TEST(PairBatch, FixedIsCutAsTheAuthorsDo) {
  const std::vector<PairLengths> lengths = {{3, 3}, {1, 2}, {4, 1}, {2, 3}, {3, 1}, {12, 1}, {4, 5}};
  const PairBatchPlan plan{.tokens_per_batch = 10};
  EXPECT_EQ(as_set(pair_batches(lengths, plan, 0)), (std::set<PairBatch>{{1, 3, 0}, {4, 2}, {6}, {5}}));
}

TEST(PairBatch, Edges) {
  EXPECT_TRUE(pair_batches({}, {}, 0).empty());
  EXPECT_TRUE(pair_batches({}, {.batching = PairBatching::bucketed}, 0).empty());
  EXPECT_THROW(pair_batches(some_lengths(1), {.tokens_per_batch = 0}, 0), UsageError);
}

TEST(PairBatch, ALongPairDoesNotLimitTheNextBatch) {
  const std::vector<PairLengths> lengths = {{1, 9}, {2, 1}, {2, 1}, {2, 1}, {2, 1}};
  EXPECT_EQ(as_set(pair_batches(lengths, {.tokens_per_batch = 10}, 0)), (std::set<PairBatch>{{0}, {1, 2, 3, 4}}));
}

// Up to 8, then steps of a fifth: 9.6, 11.52, 13.8.
TEST(PairBatch, BucketsAreAFifthWide) {
  const std::vector<PairLengths> lengths = {{1, 1}, {8, 2}, {3, 9}, {10, 1}, {11, 1}, {12, 1}, {13, 1}, {14, 1}};
  std::set<std::set<size_t>> batches;
  for (const PairBatch& batch :
       pair_batches(lengths, {.tokens_per_batch = 1000, .batching = PairBatching::bucketed}, 0))
    batches.insert({batch.begin(), batch.end()});
  EXPECT_EQ(batches, (std::set<std::set<size_t>>{{0, 1}, {2}, {3, 4}, {5, 6}, {7}}));
}

}  // namespace
}  // namespace normlab
