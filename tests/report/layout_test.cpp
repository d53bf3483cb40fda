// Tests of the layout of text.
#include "normlab/report/layout.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace normlab {
namespace {

using ::testing::ElementsAre;

TEST(TextWidth, CountsCharactersNotBytes) {
  EXPECT_DOUBLE_EQ(text_width("", 13), 0);
  EXPECT_NEAR(text_width("1.482", 10), 4 * 6.1 + 3.6, 1e-9);
  EXPECT_DOUBLE_EQ(text_width("−", 10), text_width("=", 10));
}

TEST(Wrap, BreaksAtBlanks) {
  const double width = text_width("one two", 10);
  EXPECT_THAT(wrap("one two three", width, 10), ElementsAre("one two", "three"));
  EXPECT_THAT(wrap("", width, 10), ElementsAre());
  EXPECT_THAT(wrap("averyveryverylongword", 5, 10), ElementsAre("averyveryverylongword"));
}

TEST(Shortened, KeepsStartAndEndAndWholeCharacters) {
  EXPECT_EQ(shortened("short", 1000, 10), "short");
  const std::string cut = shortened("qknorm with a very long name, p = 3", 120, 10);
  EXPECT_LE(text_width(cut, 10), 120 + 3);
  EXPECT_EQ(cut.substr(0, 6), "qknorm");
  EXPECT_EQ(cut.substr(cut.size() - 5), "p = 3");
  EXPECT_EQ(shortened("ööööööööö", 40, 10), "ööö…öö");
  EXPECT_EQ(shortened("ööööööööö", 0, 10), "…");
}

TEST(Spread, KeepsFreeLabelsInPlace) { EXPECT_THAT(spread({10, 50, 90}, 15, 0, 100), ElementsAre(10, 50, 90)); }

TEST(Spread, PushesCrowdedLabelsApartAroundTheirMiddle) {
  EXPECT_THAT(spread({48, 50, 52}, 10, 0, 100), ElementsAre(40, 50, 60));
  EXPECT_THAT(spread({}, 10, 0, 100), ElementsAre());
}

TEST(Spread, StaysInsideAndInOrder) {
  for (const double at : {0.0, 3.0, 97.0, 150.0}) {
    const auto places = spread({at, at, at + 1, at + 30}, 12, 0, 100);
    ASSERT_EQ(places.size(), 4u);
    EXPECT_GE(places.front(), 0);
    EXPECT_LE(places.back(), 100 + 1e-9);
    for (std::size_t i = 1; i < 4; ++i) EXPECT_GE(places[i] - places[i - 1], 12 - 1e-9);
  }
}

TEST(Spread, ShrinksTheGapWhenThereIsNoRoom) {
  const auto places = spread(std::vector<double>(11, 5.0), 20, 0, 100);
  EXPECT_DOUBLE_EQ(places.front(), 0);
  EXPECT_NEAR(places.back(), 100, 1e-9);
}

}  // namespace
}  // namespace normlab
