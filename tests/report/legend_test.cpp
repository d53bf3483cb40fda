// Tests of keys at line ends and in legends.
#include "normlab/report/legend.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "xml_check.h"

namespace normlab {
namespace {

using ::testing::HasSubstr;

std::vector<Key> sample() {
  const auto styles = ordered_styles(4, 1);
  return {{0, "a <low>", styles[0], 1.5},
          {1, "base", styles[1], 2.5},
          {2, "lost", styles[2], HUGE_VAL},
          {3, "none", styles[3], std::nan("")}};
}

TEST(SortKeys, LargestFirstMissingLast) {
  auto keys = sample();
  sort_keys(keys);
  std::string order;
  for (const Key& key : keys) order += key.label[0];
  EXPECT_EQ(order, "lban");
}

TEST(DrawLegend, EveryKeyWithItsValueAndNumber) {
  Svg svg;
  const double bottom = draw_legend(svg, narrow_canvas, 100, sample());
  const std::string text = svg.take();
  EXPECT_EQ(testing::xml_problem(text), "");
  EXPECT_GT(bottom, 100);
  EXPECT_EQ(testing::count(text, "class=\"tone key"), 4u);
  EXPECT_THAT(text, HasSubstr("a &lt;low&gt;</text>"));
  EXPECT_THAT(text, HasSubstr(">1.500</text>"));
  EXPECT_THAT(text, HasSubstr(">diverged</text>"));
  EXPECT_THAT(text, HasSubstr(">no data</text>"));
  EXPECT_THAT(text, HasSubstr("class=\"tone key baseline\" data-series=\"1\""));
}

TEST(DrawLegend, MoreColumnsWhereThereIsRoom) {
  std::vector<Key> keys(12, sample()[0]);
  Svg svg;
  EXPECT_GT(draw_legend(svg, narrow_canvas, 0, keys), draw_legend(svg, wide_canvas, 0, keys));
  EXPECT_EQ(draw_legend(svg, wide_canvas, 7, {}), 7);
}

TEST(EndKeys, OnlyWhereThereIsRoom) {
  std::vector<Key> keys(7, sample()[0]);
  EXPECT_TRUE(end_keys_fit(wide_canvas, 370, keys));
  EXPECT_FALSE(end_keys_fit(narrow_canvas, 370, keys));
  keys.resize(30, sample()[0]);
  EXPECT_FALSE(end_keys_fit(wide_canvas, 370, keys));
  keys = {sample()[0]};
  keys[0].label = std::string(60, 'w');
  EXPECT_FALSE(end_keys_fit(wide_canvas, 370, keys));
}

TEST(EndKeys, LeadOnlyToLinesThatGetThere) {
  Plot plot{{50, 20, 600, 300}, make_axis("", {0, 1}, false, 2), make_axis("", {1, 3}, false, 2)};
  fit(plot);
  auto keys = sample();
  sort_keys(keys);
  Svg svg;
  draw_end_keys(svg, plot, keys);
  const std::string text = svg.take();
  EXPECT_EQ(testing::count(text, "class=\"tone key"), 4u);
  EXPECT_EQ(testing::count(text, "class=\"lead\""), 2u);
}

}  // namespace
}  // namespace normlab
