// Holm's intervals: that they say what Holm's p values say, whatever the data, and the rates that they promise.
#include <gmock/gmock.h>

#include <algorithm>
#include <vector>

#include "draws.h"
#include "normlab/stats/paired.h"
#include "refusal.h"

namespace normlab {
namespace {

constexpr double alpha = 0.05;

bool excludes(const Interval& interval, double value) { return value < interval.low || interval.high < value; }

// Differences of some rivals to one baseline over `blocks`, which they share: so do all their tests.
std::vector<TTest> draw_tests(const std::vector<double>& effects, size_t blocks, uint64_t key) {
  NormalDraws normal(key);
  std::vector<double> baseline(blocks);
  for (double& each : baseline) each = normal();
  std::vector<TTest> tests;
  for (const double effect : effects) {
    std::vector<double> differences;
    for (size_t i = 0; i < blocks; ++i) differences.push_back(effect + normal() - baseline[i]);
    tests.push_back(corrected_resampled_t(differences, key % 2 ? 1.0 / 9 : 0.0));
  }
  return tests;
}

std::vector<double> adjusted_p(const std::vector<TTest>& tests) {
  std::vector<double> p_values;
  for (const TTest& test : tests) p_values.push_back(test.p_value);
  return holm(p_values);
}

TEST(HolmIntervals, LevelsAreThoseOfTheSteps) {
  // p of about 1e-5, 0.008, 0.10 and 0.9: Holm rejects the first two and stops at the third.
  std::vector<TTest> tests;
  for (const double mean : {0.1, 1.4, 3.2, -8.0}) {
    std::vector<double> differences;
    for (const double noise : {-1.5, -1.0, -0.5, 0.0, 0.5, 1.0, 1.5, 2.0, -2.0, 0.0})
      differences.push_back(mean + 2 * noise);
    tests.push_back(paired_t(differences));
  }
  const std::vector<double> p_values = adjusted_p(tests);
  ASSERT_THAT(p_values,
              testing::ElementsAre(testing::Gt(alpha), testing::Gt(alpha), testing::Lt(alpha), testing::Lt(alpha)));
  const std::vector<Interval> intervals = holm_intervals(tests, alpha);
  EXPECT_DOUBLE_EQ(intervals[3].level, 1 - alpha / 4);
  EXPECT_DOUBLE_EQ(intervals[2].level, 1 - alpha / 3);
  EXPECT_DOUBLE_EQ(intervals[1].level, 1 - alpha / 2);
  EXPECT_DOUBLE_EQ(intervals[0].level, 1 - alpha / 2);
  for (size_t i = 0; i < tests.size(); ++i) EXPECT_LT(intervals[i].low, tests[i].interval.low);  // wider than of one
  const std::vector<Interval> only = holm_intervals(std::vector{tests[1]}, alpha);
  EXPECT_NEAR(only[0].low, tests[1].interval.low, 1e-14);
  EXPECT_NEAR(only[0].high, tests[1].interval.high, 1e-14);
  EXPECT_THAT(holm_intervals({}, alpha), testing::IsEmpty());
  expect_refused([&] { holm_intervals(tests, 1.5); }, Exit::usage, "confidence level");
}

TEST(HolmIntervals, ExcludeZeroExactlyWhereHolmRejects) {
  size_t shown = 0, unadjusted_disagree = 0;
  for (uint64_t study = 0; study < 3000; ++study) {
    std::vector<double> effects(1 + draw_below(60, study, 8));
    for (size_t i = 0; i < effects.size(); ++i) effects[i] = draw_uniform(stream_key(61, study), i) * 3 - 1.5;
    const std::vector<TTest> tests = draw_tests(effects, 2 + draw_below(62, study, 9), stream_key(63, study));
    const std::vector<double> p_values = adjusted_p(tests);
    const std::vector<Interval> intervals = holm_intervals(tests, alpha);
    for (size_t i = 0; i < tests.size(); ++i) {
      ASSERT_EQ(p_values[i] <= alpha, excludes(intervals[i], 0)) << study << ", p " << p_values[i];
      ASSERT_LE(intervals[i].low, tests[i].mean);
      ASSERT_GE(intervals[i].high, tests[i].mean);
      shown += p_values[i] <= alpha;
      unadjusted_disagree += (p_values[i] <= alpha) != excludes(tests[i].interval, 0);
    }
  }
  EXPECT_GT(shown, 500u);
  EXPECT_GT(unadjusted_disagree, 300u);  // what the reader of plain 95 % intervals would have seen
}

TEST(HolmIntervals, AgreeWherePIsTheLevelItself) {
  // Means scaled so that p = 0.05 / k to the last bits, where rounding decides.
  for (const double steps : {1.0, 2.0, 3.0}) {
    TTest test = paired_t(std::vector{1.0, 2.0, 4.0, 3.5});
    const double to_edge = (test.mean - paired_t(std::vector{1.0, 2.0, 4.0, 3.5}, 1 - alpha / steps).interval.low);
    for (const double nudge : {-1e-15, 0.0, 1e-15}) {
      std::vector<TTest> tests(static_cast<size_t>(steps), paired_t(std::vector{1.0, -1.0, 2.0, -2.0}));
      std::vector<double> values = {1.0, 2.0, 4.0, 3.5};
      for (double& each : values) each += to_edge - test.mean + nudge;
      tests[0] = paired_t(values);
      const bool rejected = adjusted_p(tests)[0] <= alpha;
      EXPECT_EQ(rejected, excludes(holm_intervals(tests, alpha)[0], 0)) << steps << " " << nudge;
    }
  }
}

// Of six comparisons over ten blocks: how often one wrongly excludes 0, and how often all six cover their means.
struct Rates {
  double wrong = 0, joint = 0;
};
Rates simulate(const std::vector<double>& effects) {
  constexpr int simulations = 4000;
  Rates rates;
  for (int simulation = 0; simulation < simulations; ++simulation) {
    const std::vector<Interval> intervals =
        holm_intervals(draw_tests(effects, 10, 2 * stream_key(64, simulation)), alpha);
    bool wrong = false, joint = true;
    for (size_t i = 0; i < effects.size(); ++i) {
      wrong = wrong || (effects[i] == 0 && excludes(intervals[i], 0));
      joint = joint && !excludes(intervals[i], effects[i]);
    }
    rates.wrong += wrong / double{simulations};
    rates.joint += joint / double{simulations};
  }
  return rates;
}

TEST(HolmIntervals, KeepTheirRates) {
  const double margin = sampling_error(alpha, 4000);
  const Rates none = simulate({0, 0, 0, 0, 0, 0}), half = simulate({0, 0, 0, 2, 3, -4}),
              all = simulate({1, -1, 2, -2, 3, -4});
  RecordProperty("joint_coverage_none_half_all",
                 testing::PrintToString(std::vector{none.joint, half.joint, all.joint}));
  EXPECT_LE(none.wrong, alpha + margin);
  EXPECT_LE(half.wrong, alpha + margin);
  EXPECT_GE(none.joint, 1 - alpha - margin);
  // Every step's error may add up: 0.05 (1/6 + ... + 1/1) of six.
  EXPECT_GE(half.joint, 1 - alpha * (1 + 1.0 / 4 + 1.0 / 5 + 1.0 / 6) - margin);
  EXPECT_GE(all.joint, 1 - alpha * 2.45 - margin);
}

}  // namespace
}  // namespace normlab
