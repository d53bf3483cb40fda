// Tests of the thinning of curves.
#include "normlab/report/thin.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

namespace normlab {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(Thin, ShortCurvesAreKept) {
  EXPECT_THAT(thin(std::vector<double>{}, 10), IsEmpty());
  EXPECT_THAT(thin(std::vector<double>{3, 1, 2}, 10), ElementsAre(0, 1, 2));
}

TEST(Thin, KeepsEndsAndEverySpike) {
  std::vector<double> values(10000, 1.0);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] += 1e-6 * static_cast<double>(i % 7);
  values[4321] = 9;
  values[7777] = -9;
  const auto kept = thin(values, 200);
  EXPECT_LE(kept.size(), 200u);
  EXPECT_EQ(kept.front(), 0u);
  EXPECT_EQ(kept.back(), 9999u);
  EXPECT_THAT(kept, Contains(4321u));
  EXPECT_THAT(kept, Contains(7777u));
  EXPECT_TRUE(std::is_sorted(kept.begin(), kept.end()));
  EXPECT_EQ(std::adjacent_find(kept.begin(), kept.end()), kept.end());
}

TEST(Thin, KeepsGaps) {
  std::vector<double> values(5000, 2.0);
  values[2500] = std::nan("");
  std::fill(values.begin() + 4000, values.end(), HUGE_VAL);
  const auto kept = thin(values, 100);
  EXPECT_LE(kept.size(), 100u);
  EXPECT_THAT(kept, Contains(2500u));
  EXPECT_THAT(kept, Contains(4000u));
}

TEST(Thin, AnyLengthStaysWithinTheLimit) {
  for (std::size_t count : {5u, 6u, 7u, 31u, 32u, 33u, 1000u}) {
    for (std::size_t most : {0u, 5u, 6u, 7u, 30u, 64u}) {
      std::vector<double> values(count);
      for (std::size_t i = 0; i < count; ++i) values[i] = std::sin(static_cast<double>(i));
      EXPECT_LE(thin(values, most).size(), std::max<std::size_t>(most, 5)) << count << ' ' << most;
    }
  }
}

TEST(Thin, GapsEverywhereStayWithinTheLimit) {
  for (std::size_t most : {5u, 8u, 30u, 64u}) {
    std::vector<double> values(1000);
    for (std::size_t i = 0; i < values.size(); ++i)
      values[i] = i % 3 == 0 ? std::nan("") : std::sin(static_cast<double>(i));
    EXPECT_LE(thin(values, most).size(), most);
  }
}

}  // namespace
}  // namespace normlab
