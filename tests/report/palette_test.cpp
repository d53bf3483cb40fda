// Tests of the palette: seen on both backgrounds, told apart, the baseline emphasised.
#include "normlab/report/palette.h"

#include <gtest/gtest.h>

#include <set>

#include "normlab/report/colour.h"

namespace normlab {
namespace {

TEST(OrderedStyles, StandOutOnBothBackgrounds) {
  for (const std::size_t count : {1u, 2u, 7u, 12u}) {
    for (const Style& style : ordered_styles(count)) {
      EXPECT_GE(contrast(style.tone.light, paper_light), 3) << style.tone.light;
      EXPECT_GE(contrast(style.tone.dark, paper_dark), 3) << style.tone.dark;
    }
  }
}

TEST(OrderedStyles, NeighboursAreNeighboursInColour) {
  const auto styles = ordered_styles(7);
  for (std::size_t i = 2; i < 7; ++i) {
    EXPECT_LT(colour_distance(styles[i].tone.light, styles[i - 1].tone.light),
              colour_distance(styles[i].tone.light, styles[i - 2].tone.light));
    EXPECT_GT(contrast(styles[i].tone.dark, paper_dark), contrast(styles[i - 1].tone.dark, paper_dark));
  }
}

TEST(OrderedStyles, BaselineIsBlackOrWhiteAndKeepsTheOthersInPlace) {
  const auto plain = ordered_styles(7), styles = ordered_styles(7, 2);
  EXPECT_TRUE(styles[2].baseline);
  EXPECT_GE(contrast(styles[2].tone.light, paper_light), 15);
  EXPECT_GE(contrast(styles[2].tone.dark, paper_dark), 15);
  EXPECT_TRUE(styles[2].dash.empty());
  EXPECT_EQ(styles[3].tone.light, plain[3].tone.light);
  EXPECT_FALSE(styles[3].baseline);
}

TEST(Styles, NeighboursDifferInDashAndMarkerToo) {
  for (const auto& styles : {ordered_styles(9), category_styles(9)}) {
    for (std::size_t i = 1; i < 9; ++i) {
      EXPECT_NE(styles[i].dash, styles[i - 1].dash);
      EXPECT_NE(styles[i].marker, styles[i - 1].marker);
    }
  }
}

TEST(CategoryStyles, OkabeItoEachOnce) {
  const auto styles = category_styles(8, 3);
  std::set<std::string> colours;
  for (const Style& style : styles) colours.insert(style.tone.light);
  EXPECT_EQ(colours.size(), 8u);  // seven colours and the baseline's black
  EXPECT_EQ(styles[0].tone.light, "#0072B2");
}

TEST(HeatTones, FromTheBackgroundToStrong) {
  const auto tones = heat_tones(24);
  EXPECT_LT(contrast(tones.front().light, paper_light), 1.2);
  EXPECT_GT(contrast(tones.back().light, paper_light), 10);
  EXPECT_GT(contrast(tones.back().dark, paper_dark), 10);
  for (std::size_t i = 1; i < 24; ++i) {
    EXPECT_GT(contrast(tones[i].light, paper_light), contrast(tones[i - 1].light, paper_light));
    EXPECT_GT(contrast(tones[i].dark, paper_dark), contrast(tones[i - 1].dark, paper_dark));
  }
}

TEST(MarkerPath, EveryMarkerIsItsOwnClosedShape) {
  std::set<std::string> shapes;
  for (int i = 0; i < 7; ++i) shapes.insert(marker_path(static_cast<Marker>(i), 10, 10, 4));
  EXPECT_EQ(shapes.size(), 7u);
  for (const std::string& shape : shapes) EXPECT_EQ(shape.back(), 'z');
}

}  // namespace
}  // namespace normlab
