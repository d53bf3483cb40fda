// Crossing of a target loss by hand, and the speed-up factor against SciPy.
#include "normlab/stats/convergence.h"

#include <gmock/gmock.h>

#include <cmath>

#include "refusal.h"

namespace normlab {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

// Falls, rises above what it had, and crosses 2 late.
const std::vector<CurvePoint> curve{{0, 1, 4.0}, {100, 11, 2.5}, {200, 31, 3.0}, {300, 41, 1.5}, {400, 61, 1.75}};

void expect_reached(const std::optional<Reached>& reached, double step, double seconds) {
  ASSERT_TRUE(reached);
  EXPECT_DOUBLE_EQ(reached->step, step);
  EXPECT_DOUBLE_EQ(reached->seconds, seconds);
}

TEST(Convergence, InterpolatesTheFirstCrossing) {
  expect_reached(first_reached(curve, 3.0), 100 * 2.0 / 3, 1 + 10 * 2.0 / 3);
  expect_reached(first_reached(curve, 2.0), 200 + 100 * 2.0 / 3, 31 + 10 * 2.0 / 3);
  expect_reached(first_reached(curve, 2.5), 100, 11);
  expect_reached(first_reached(curve, 1.5), 300, 41);
}

TEST(Convergence, RunningMinimumForgetsARise) {
  expect_reached(first_reached(curve, 2.0, Smoothing::running_minimum), 250, 36);
  expect_reached(first_reached(curve, 3.0, Smoothing::running_minimum), 100 * 2.0 / 3, 1 + 10 * 2.0 / 3);
}

TEST(Convergence, NotReachedAndReachedFromTheStart) {
  EXPECT_FALSE(first_reached(curve, 1.4));
  EXPECT_FALSE(first_reached(curve, 1.4, Smoothing::running_minimum));
  expect_reached(first_reached(curve, 4.0), 0, 1);
  expect_reached(first_reached(curve, 9.0), 0, 1);
  expect_reached(first_reached(std::vector<CurvePoint>{{7, 2, 4}, {8, 3, 5}}, 4.0), 7, 2);
  EXPECT_FALSE(first_reached(std::vector<CurvePoint>{{0, 0, 4}}, 3));
  EXPECT_FALSE(first_reached(std::vector<CurvePoint>{{0, 0, 4}, {1, 1, 4}}, 3.9));
}

TEST(Convergence, RefusesBadCurves) {
  expect_refused([] { first_reached({}, 2); }, Exit::data, "[convergence] the curve is empty");
  expect_refused([] { first_reached(curve, nan); }, Exit::usage, "target loss is not finite");
  expect_refused(
      [] {
        first_reached(std::vector<CurvePoint>{{0, 0, 3}, {1, 1, nan}}, 2);
      },
      Exit::data, "point 2 of 2 of the curve is not finite");
  expect_refused([] { first_reached(std::vector<CurvePoint>{{0, 0, inf}}, 2); }, Exit::data, "not finite");
  expect_refused(
      [] {
        first_reached(std::vector<CurvePoint>{{5, 0, 3}, {5, 1, 2}}, 2);
      },
      Exit::data, "goes back at point 2; got step 5 at 1 s, expected later than step 5 at 0 s");
  expect_refused([] { first_reached(std::vector<CurvePoint>{{5, 2, 3}, {6, 1, 2}}, 2); }, Exit::data, "goes back");
}

std::vector<Arrival> reached_at(const std::vector<double>& steps) {
  std::vector<Arrival> folds;
  for (double step : steps) folds.push_back({{.step = step, .seconds = 0.5 * step * step}});
  return folds;
}

const auto baseline = reached_at({1000, 1100, 950, 1200, 1050, 990, 1130, 1010});
const auto rival = reached_at({800, 760, 900, 850, 700, 720, 1150, 740});

// logs = numpy.log(baseline / rival); numpy.exp(logs.mean() +- scipy.stats.t.ppf(0.975, 7) * logs.std(ddof=1) *
// numpy.sqrt(1 / 8 + 1 / 9))
TEST(SpeedUp, AsScipy) {
  const SpeedUp result = speed_up(baseline, rival, Cost::steps, 1.0 / 9);
  ASSERT_TRUE(result.factor && result.interval);
  EXPECT_NEAR(*result.factor, 1.2855074327511093, 1e-13);
  EXPECT_NEAR(result.interval->low, 1.0766945051417598, 1e-12);
  EXPECT_NEAR(result.interval->high, 1.5348173058993855, 1e-12);
  EXPECT_EQ(result.interval->level, 0.95);
  EXPECT_EQ(result.ratios.size(), 8u);
  EXPECT_EQ(result.only_rival + result.only_baseline + result.neither, 0u);
}

TEST(SpeedUp, InSecondsAndTurnedRound) {
  const SpeedUp steps = speed_up(baseline, rival, Cost::steps, 0), turned = speed_up(rival, baseline, Cost::steps, 0);
  EXPECT_NEAR(*speed_up(baseline, rival, Cost::seconds, 0).factor, *steps.factor * *steps.factor, 1e-12);
  EXPECT_NEAR(*turned.factor, 1 / *steps.factor, 1e-13);
  EXPECT_NEAR(turned.interval->low, 1 / steps.interval->high, 1e-13);
  const SpeedUp same = speed_up(baseline, baseline, Cost::steps, 0);
  EXPECT_DOUBLE_EQ(*same.factor, 1);
  EXPECT_DOUBLE_EQ(same.interval->low, 1);
}

Arrival never(double steps) { return {{.step = steps, .seconds = steps / 10}, false}; }
Arrival at(double steps) { return {{.step = steps, .seconds = steps / 10}, true}; }

// One of three folds is faster; the others ran 100 steps in vain. Dropping them, as was done once, would say 1.6.
TEST(SpeedUp, AFoldThatDoesNotReachCountsAsNotFaster) {
  const std::vector<Arrival> baseline_folds = {at(80), at(90), at(100)};
  const SpeedUp some = speed_up(baseline_folds, std::vector{at(50), never(100), never(100)}, Cost::steps, 0.5);
  EXPECT_THAT(some.ratios, ElementsAre(1.6, 0.9, 1));
  EXPECT_NEAR(*some.factor, std::cbrt(1.6 * 0.9), 1e-12);
  EXPECT_EQ(some.reached(), 1u);
  EXPECT_EQ(some.only_baseline, 2u);
  EXPECT_EQ(some.bound(), Bound::at_most);
  EXPECT_FALSE(some.interval);  // two of the three ratios are bounds
  // A rival that stops early is not the faster for it.
  EXPECT_THAT(speed_up(std::vector{at(80)}, std::vector{never(40)}, Cost::steps, 0).ratios, ElementsAre(1));
}

TEST(SpeedUp, CountsFoldsThatDoNotReach) {
  const SpeedUp some = speed_up(std::vector{at(20), never(100), at(10), never(100), never(100)},
                                std::vector{at(10), at(10), never(100), never(100), at(10)}, Cost::steps, 0);
  EXPECT_THAT(some.ratios, ElementsAre(2, 10, 0.1, 1, 10));
  EXPECT_EQ(some.only_rival, 2u);
  EXPECT_EQ(some.only_baseline, 1u);
  EXPECT_EQ(some.neither, 1u);
  EXPECT_EQ(some.reached(), 3u);
  EXPECT_EQ(some.bound(), Bound::both);
  const SpeedUp lower = speed_up(std::vector{never(100), at(50)}, std::vector{at(20), at(50)}, Cost::steps, 0);
  EXPECT_EQ(lower.bound(), Bound::at_least);
  EXPECT_FALSE(lower.interval);
  EXPECT_THAT(speed_up({}, {}, Cost::steps, 0).ratios, IsEmpty());
  EXPECT_FALSE(speed_up({}, {}, Cost::steps, 0).factor);
}

TEST(SpeedUp, RefusesBadInput) {
  expect_refused([] { speed_up(baseline, reached_at({1}), Cost::steps, 0); }, Exit::data, "got 8 and 1");
  expect_refused([] { speed_up(reached_at({0}), reached_at({1}), Cost::steps, 0); }, Exit::data,
                 "at no cost; got 0 steps, expected more than 0");
  expect_refused([] { speed_up(reached_at({1}), reached_at({nan}), Cost::seconds, 0); }, Exit::data, "got nan seconds");
}

}  // namespace
}  // namespace normlab
