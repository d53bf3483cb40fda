// Tests of scales, ticks and units.
#include "normlab/report/scale.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

namespace normlab {
namespace {

using ::testing::DoubleNear;
using ::testing::ElementsAre;
using ::testing::Pointwise;

constexpr double nan = std::numeric_limits<double>::quiet_NaN();

TEST(Extent, IgnoresWhatHasNoPlace) {
  Extent range;
  EXPECT_TRUE(range.empty());
  for (const double value : {nan, HUGE_VAL, -HUGE_VAL, 1e300}) range.include(value);
  EXPECT_TRUE(range.empty());
  range.include(2);
  range.include(-1);
  EXPECT_EQ(range.low, -1);
  EXPECT_EQ(range.high, 2);
}

TEST(Padded, AirOnBothSides) {
  const Extent range = padded({10, 20}, 0.1);
  EXPECT_DOUBLE_EQ(range.low, 9);
  EXPECT_DOUBLE_EQ(range.high, 21);
}

TEST(Padded, DoesNotCrossZero) {
  EXPECT_EQ(padded({0.1, 20}, 0.1).low, 0);
  EXPECT_EQ(padded({-20, -0.1}, 0.1).high, 0);
  EXPECT_LT(padded({-1, 20}, 0.1).low, -1);
}

TEST(Padded, OneValueStillHasAnAxis) {
  for (const double value : {0.0, 3.0, -3.0, 1e-9, 1e50}) {
    for (const bool log : {false, true}) {
      if (log && value <= 0) continue;
      const Extent range = padded({value, value}, 0.05, log);
      EXPECT_LT(range.low, range.high) << value;
      EXPECT_GE(ticks(range, log, 5).size(), 1u) << value;
    }
  }
}

TEST(Scale, LinearAndLog) {
  const Scale linear{{0, 10}, 100, 200, false};
  EXPECT_DOUBLE_EQ(linear(5), 150);
  const Scale log{{1, 100}, 0, 100, true};
  EXPECT_DOUBLE_EQ(log(10), 50);
  EXPECT_TRUE(std::isfinite(log(0)));
  EXPECT_TRUE(std::isfinite(linear(1e99)));
}

TEST(Ticks, RoundNumbersInside) {
  EXPECT_THAT(ticks({0, 5000}, false, 5), ElementsAre(0, 1000, 2000, 3000, 4000, 5000));
  EXPECT_THAT(ticks({1.47, 1.62}, false, 4), Pointwise(DoubleNear(1e-12), {1.5, 1.55, 1.6}));
  EXPECT_THAT(ticks({-0.013, 0.021}, false, 4), Pointwise(DoubleNear(1e-12), {-0.01, 0.0, 0.01, 0.02}));
}

TEST(Ticks, NeverOneAloneNorTooMany) {
  EXPECT_GE(ticks({1.1, 2.9}, false, 2).size(), 2u);  // steps of 1 would give only 2
  for (double low : {-3.0, 0.0, 0.9, 2500.0, 1e-7, 1e15}) {
    for (double span : {1e-6, 0.013, 1.0, 2500.0, 1e12}) {
      for (int wanted = 1; wanted < 9; ++wanted) {
        const auto found = ticks({low, low + span}, false, wanted);
        if (span / std::max(1.0, std::abs(low)) < 1e-9) continue;  // below what a double can tell apart here
        EXPECT_GE(found.size(), 2u) << low << ' ' << span << ' ' << wanted;
        EXPECT_LE(found.size(), 2u * static_cast<std::size_t>(wanted) + 4) << low << ' ' << span << ' ' << wanted;
        for (const double tick : found) {
          EXPECT_GE(tick, low - 1e-5 * span);
          EXPECT_LE(tick, low + span * (1 + 1e-5));
        }
      }
    }
  }
}

TEST(Ticks, Log) {
  EXPECT_THAT(ticks({1.4, 4.3}, true, 6), Pointwise(DoubleNear(1e-12), {1.5, 2.0, 3.0, 4.0}));
  EXPECT_THAT(ticks({0.12, 1.9}, true, 7), Pointwise(DoubleNear(1e-12), {0.15, 0.2, 0.3, 0.4, 0.5, 0.7, 1.0, 1.5}));
  EXPECT_THAT(ticks({0.05, 2}, true, 7), Pointwise(DoubleNear(1e-12), {0.05, 0.1, 0.2, 0.3, 0.5, 1.0, 2.0}));
  EXPECT_THAT(ticks({1, 1e6}, true, 6), Pointwise(DoubleNear(1e-6), {1.0, 10.0, 100.0, 1e3, 1e4, 1e5, 1e6}));
  EXPECT_THAT(ticks({1.48, 1.52}, true, 4), Pointwise(DoubleNear(1e-12), {1.48, 1.49, 1.5, 1.51, 1.52}));
}

TEST(TickLabels, SameDecimalsThousandsAndMinus) {
  EXPECT_THAT(tick_labels({0, 0.5, 1}, false), ElementsAre("0.0", "0.5", "1.0"));
  EXPECT_THAT(tick_labels({0, 2500, 10000, 1000000}, false), ElementsAre("0", "2,500", "10,000", "1,000,000"));
  EXPECT_THAT(tick_labels({-1000, 0}, false), ElementsAre("−1,000", "0"));
  EXPECT_THAT(tick_labels({0.1, 1, 10}, true), ElementsAre("0.1", "1", "10"));
  EXPECT_THAT(tick_labels({0, 1e9}, false), ElementsAre("0", "1.00e+09"));
  EXPECT_THAT(tick_labels({999.5}, false), ElementsAre("999.5"));
}

TEST(SignedNumber, PlusOnlyWhenItShows) {
  EXPECT_EQ(signed_number(0.0214, 3), "+0.021");
  EXPECT_EQ(signed_number(-0.0214, 3), "−0.021");
  EXPECT_EQ(signed_number(0.0001, 3), "0.000");
  EXPECT_EQ(interval_decimals(0.01, 0.02, 3), 3);
  EXPECT_EQ(interval_decimals(0.00003, 0.02, 3), 5);  // 0.0000 would look as if the interval held 0
  EXPECT_EQ(interval_decimals(-0.02, -0.0004, 3), 4);
  EXPECT_EQ(interval_decimals(0, 0.02, 3), 3);
  EXPECT_EQ(interval_decimals(1e-300, 0.02, 3), 12);
}

TEST(Units, KeepLabelsShort) {
  EXPECT_EQ(time_unit(90).name, "s");
  EXPECT_EQ(time_unit(600).divisor, 60);
  EXPECT_EQ(time_unit(86400).name, "h");
  EXPECT_EQ(count_unit(5000).divisor, 1);
  EXPECT_EQ(count_unit(8e7).name, "millions");
}

}  // namespace
}  // namespace normlab
