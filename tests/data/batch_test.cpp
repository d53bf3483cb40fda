// Batches: windows stay in the training segments, reach every place equally, and depend on (seed, fold, step) alone.
#include "normlab/data/batch.h"

#include <gtest/gtest.h>

#include <map>
#include <numeric>
#include <set>

#include "normlab/base/error.h"

namespace normlab {
namespace {

struct Batch {
  std::vector<int64_t> inputs, targets;
  bool operator==(const Batch&) const = default;
};

// Token i of the text is i, so that a batch shows the places it was read from.
std::vector<int32_t> counting_text(int n) {
  std::vector<int32_t> tokens(static_cast<size_t>(n));
  std::iota(tokens.begin(), tokens.end(), 0);
  return tokens;
}

Batch batch_of(const BatchPlan& plan, const Tokens& tokens, const Split& split, int64_t step) {
  const size_t size = static_cast<size_t>(plan.batch_size) * static_cast<size_t>(plan.seq_len);
  Batch batch{std::vector<int64_t>(size, -1), std::vector<int64_t>(size, -1)};
  fill_batch(plan, tokens, split, step, batch.inputs, batch.targets);
  return batch;
}

TEST(FillBatch, WindowsAreConsecutiveAndKeepOffTheSeam) {
  for (const int seq_len : {1, 7, 31, 33})
    for (int fold = 0; fold < 5; ++fold) {
      const auto tokens = counting_text(400);
      const Split split = make_split(400, 5, fold);
      const BatchPlan plan{.seed = 3, .fold = fold, .batch_size = 16, .seq_len = seq_len};
      for (int64_t step = 0; step < 200; ++step) {
        const Batch batch = batch_of(plan, tokens, split, step);
        for (size_t i = 0; i < batch.inputs.size(); ++i) {
          const size_t column = i % static_cast<size_t>(seq_len);
          const int64_t begin = batch.inputs[i - column];
          ASSERT_EQ(batch.inputs[i], begin + static_cast<int64_t>(column));
          ASSERT_EQ(batch.targets[i], batch.inputs[i] + 1);
          ASSERT_TRUE(begin + seq_len < split.held_out.begin || begin >= split.held_out.end) << begin;
        }
      }
    }
}

TEST(FillBatch, ReachesEveryStartEqually) {
  const int seq_len = 4;
  const auto tokens = counting_text(33);
  const Split split = make_split(33, 3, 1);  // 11 + 11 + 11: seven starts on either side
  const BatchPlan plan{.seed = 1, .fold = 1, .batch_size = 10, .seq_len = seq_len};
  std::map<int64_t, int> counts;
  for (int64_t step = 0; step < 14000; ++step) {
    const Batch batch = batch_of(plan, tokens, split, step);
    for (size_t row = 0; row < 10; ++row) ++counts[batch.inputs[row * seq_len]];
  }
  std::set<int64_t> starts;
  double chi_square = 0;
  for (const auto& [begin, count] : counts) {
    starts.insert(begin);
    chi_square += (count - 10000.0) * (count - 10000.0) / 10000.0;
  }
  EXPECT_EQ(starts, (std::set<int64_t>{0, 1, 2, 3, 4, 5, 6, 22, 23, 24, 25, 26, 27, 28}));
  EXPECT_LT(chi_square, 34.5);  // the 99.9 % point with 13 degrees of freedom
}

TEST(FillBatch, IsAPureFunctionOfSeedFoldAndStep) {
  const auto tokens = counting_text(5000);
  const Split split = make_split(5000, 10, 9);
  const BatchPlan plan{.seed = 1, .fold = 9, .batch_size = 4, .seq_len = 8};
  const Batch first = batch_of(plan, tokens, split, 5);
  for (int64_t step = 100; step > 0; --step) batch_of(plan, tokens, split, step);
  EXPECT_EQ(batch_of(plan, tokens, split, 5), first);
  EXPECT_NE(batch_of(plan, tokens, split, 6), first);
  EXPECT_NE(batch_of({.seed = 2, .fold = 9, .batch_size = 4, .seq_len = 8}, tokens, split, 5), first);
  EXPECT_NE(batch_of({.seed = 1, .fold = 8, .batch_size = 4, .seq_len = 8}, tokens, split, 5), first);
  // More rows add windows and change none.
  const Batch larger = batch_of({.seed = 1, .fold = 9, .batch_size = 6, .seq_len = 8}, tokens, split, 5);
  EXPECT_TRUE(std::equal(first.inputs.begin(), first.inputs.end(), larger.inputs.begin()));
}

// A change here changes every recorded run.
TEST(FillBatch, DrawsAreFrozen) {
  const auto tokens = counting_text(100000);
  const Batch batch =
      batch_of({.seed = 1337, .fold = 9, .batch_size = 4, .seq_len = 1}, tokens, make_split(100000, 10, 9), 7);
  EXPECT_EQ(batch.inputs, (std::vector<int64_t>{67170, 85451, 7376, 17572}));
}

TEST(FillBatch, RefusesWhatDoesNotFit) {
  const auto tokens = counting_text(20);
  const Split split = make_split(20, 2, 0);
  std::vector<int64_t> eight(8), nine(9);
  const BatchPlan plan{.batch_size = 2, .seq_len = 4};
  EXPECT_NO_THROW(fill_batch(plan, tokens, split, 0, eight, eight));
  EXPECT_THROW(fill_batch(plan, tokens, split, 0, nine, eight), Error);
  EXPECT_THROW(fill_batch(plan, tokens, split, 0, eight, nine), Error);
  EXPECT_THROW(fill_batch(plan, std::vector(tokens.begin(), tokens.begin() + 19), split, 0, eight, eight), Error);
  std::vector<int64_t> ten(10);
  EXPECT_THROW(fill_batch({.batch_size = 1, .seq_len = 10}, tokens, split, 0, ten, ten), DataError);
}

TEST(EvalWindows, PredictEachTokenButTheFirstOnce) {
  for (const int64_t size : {0, 1, 2, 7, 8, 9, 31, 32, 33, 64, 65, 127})
    for (const int seq_len : {1, 7, 8, 32, 200}) {
      std::vector<int> predicted(200);
      const auto windows = eval_windows({50, 50 + size}, seq_len, 0);
      for (const EvalWindow& window : windows) {
        EXPECT_TRUE(window.length >= 1 && window.length <= seq_len);
        if (&window != &windows.back()) {
          EXPECT_EQ(window.length, seq_len);
        }
        for (int i = 1; i <= window.length; ++i) ++predicted.at(static_cast<size_t>(window.begin + i));
      }
      for (int64_t i = 0; i < 200; ++i)
        EXPECT_EQ(predicted[static_cast<size_t>(i)], i > 50 && i < 50 + size) << size << " " << seq_len << " " << i;
    }
}

TEST(EvalWindows, SpreadEvenly) {
  const TokenRange segment{1000, 2005};  // 100 windows of 10 and one of 4
  EXPECT_EQ(eval_windows(segment, 10, 4), (std::vector<EvalWindow>{{1120, 10}, {1370, 10}, {1620, 10}, {1870, 10}}));
  EXPECT_EQ(eval_windows(segment, 10, 1), (std::vector<EvalWindow>{{1500, 10}}));
  EXPECT_EQ(eval_windows(segment, 10, 101), eval_windows(segment, 10, 0));
  EXPECT_EQ(eval_windows(segment, 10, 1 << 30), eval_windows(segment, 10, 0));
  for (int n = 1; n <= 100; ++n) {
    const auto windows = eval_windows(segment, 10, n);
    ASSERT_EQ(windows.size(), static_cast<size_t>(n));
    for (size_t i = 0; i < windows.size(); ++i) {
      EXPECT_EQ(windows[i].length, 10);
      EXPECT_LE(windows[i].begin + 10, segment.end - 1);
      if (i > 0) {
        EXPECT_GE(windows[i].begin, windows[i - 1].begin + 10);
      }
    }
  }
}

TEST(EvalWindows, RefuseBadNumbers) {
  EXPECT_THROW(eval_windows({0, 10}, 0, 0), UsageError);
  EXPECT_THROW(eval_windows({0, 10}, 4, -1), UsageError);
}

}  // namespace
}  // namespace normlab
