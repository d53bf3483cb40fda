#include "normlab/base/random.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>
#include <vector>

namespace normlab {
namespace {

TEST(Random, StreamsDifferByEveryPart) {
  std::set<uint64_t> keys;
  for (uint64_t seed = 0; seed < 10; ++seed)
    for (uint64_t fold = 0; fold < 10; ++fold)
      for (uint64_t step = 0; step < 10; ++step) keys.insert(stream_key(seed, fold, step));
  EXPECT_EQ(keys.size(), 1000U);
  EXPECT_NE(stream_key(1, 2), stream_key(2, 1));
  EXPECT_NE(stream_key(0), stream_key(0, 0));
}

TEST(Random, UniformDrawsHaveTheirMoments) {
  double sum = 0.0, squares = 0.0;
  constexpr int n = 100000;
  for (uint64_t i = 0; i < n; ++i) {
    const double u = draw_uniform(stream_key(1), i);
    ASSERT_GE(u, 0.0);
    ASSERT_LT(u, 1.0);
    sum += u, squares += u * u;
  }
  EXPECT_NEAR(sum / n, 0.5, 0.005);
  EXPECT_NEAR(squares / n, 1.0 / 3.0, 0.005);
}

TEST(Random, BoundedDrawsReachEveryValueEvenly) {
  std::vector<int> counts(7);
  for (uint64_t i = 0; i < 70000; ++i) ++counts[draw_below(stream_key(2), i, 7)];
  for (int count : counts) EXPECT_NEAR(count, 10000, 400);
}

// Neighbouring rows and columns must not share their fate.
TEST(Random, DropoutBitsAreUncorrelated) {
  const DropoutKey key = dropout_key(stream_key(3));
  constexpr int n = 512;
  double mean = 0.0, across = 0.0, down = 0.0;
  for (uint32_t row = 0; row < n; ++row)
    for (uint32_t column = 0; column < n; ++column) {
      const auto bit = [&](uint32_t r, uint32_t c) {
        return keep_bits(row_key(key, r), c) < drop_threshold(0.5) ? 1.0 : -1.0;
      };
      mean += bit(row, column);
      across += bit(row, column) * bit(row, column + 1);
      down += bit(row, column) * bit(row + 1, column);
    }
  const double bound = 4.0 / n;  // four standard errors of n^2 draws
  EXPECT_LT(std::abs(mean) / (n * n), bound);
  EXPECT_LT(std::abs(across) / (n * n), bound);
  EXPECT_LT(std::abs(down) / (n * n), bound);
}

TEST(Random, ThresholdKeepsItsRate) {
  EXPECT_EQ(drop_threshold(0.0), 0U);
  EXPECT_EQ(drop_threshold(0.5), 0x80000000U);
  EXPECT_EQ(drop_threshold(1.0), 0xffffffffU);
}

}  // namespace
}  // namespace normlab
