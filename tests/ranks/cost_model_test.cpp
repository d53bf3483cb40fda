// The cost model: its cases by hand, and what any network must obey.
#include "normlab/ranks/cost_model.h"

#include <gtest/gtest.h>

namespace normlab {
namespace {

// 100 ms of computation, 60 of them beside sums; 10 MB at 100 MB/s.
RankCosts costs() {
  return {.compute = 0.1, .beside = 0.06, .gradient_bytes = 1e7, .late_bytes = 1e6, .bandwidth = 1e8, .latency = 1e-3};
}

TEST(CostModel, OneRankSendsNothing) {
  EXPECT_EQ(seconds_of_sums(costs(), 1), 0.0);
  EXPECT_EQ(seconds_of_step(costs(), 1), 0.1);
  EXPECT_EQ(efficiency(costs(), 1), 1.0);
}

TEST(CostModel, TwoRanksSendTheGradientsOnce) {
  EXPECT_NEAR(seconds_of_sums(costs(), 2), 2 * (1e-3 + 0.05), 1e-12);
  // 0.102 s of sums, a tenth of them late; of the rest, 0.06 s are hidden.
  EXPECT_NEAR(seconds_of_step(costs(), 2), 0.1 + (0.0918 - 0.06) + 0.0102, 1e-12);
}

TEST(CostModel, WhatFitsBesideTheBackwardPassIsFree) {
  RankCosts fast = costs();
  fast.bandwidth = 1e12, fast.latency = 0.0, fast.late_bytes = 0.0;
  EXPECT_EQ(seconds_of_step(fast, 64), 0.1);
}

TEST(CostModel, BytesOfARankAreBoundedAndLatencyGrows) {
  RankCosts without_latency = costs();
  without_latency.latency = 0.0;
  EXPECT_LT(seconds_of_sums(without_latency, 1024), 2.0 * 1e7 / 1e8);
  EXPECT_NEAR(seconds_of_sums(costs(), 1024) - seconds_of_sums(without_latency, 1024), 2 * 10 * 1e-3, 1e-9);
}

TEST(CostModel, MoreRanksAreNeverMoreEfficient) {
  for (int ranks = 1; ranks < 1024; ranks *= 2) EXPECT_GE(efficiency(costs(), ranks), efficiency(costs(), 2 * ranks));
}

}  // namespace
}  // namespace normlab
