// Tests of axes and plots.
#include "normlab/report/plot.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "xml_check.h"

namespace normlab {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(MakeAxis, AnEmptyRangeHasNoTicks) {
  EXPECT_TRUE(make_axis("loss", {}, false, 5).ticks.empty());
  EXPECT_EQ(make_axis("loss", {0, 10}, false, 5).labels.size(), 6u);
}

TEST(DrawAxes, TicksLabelsAndTitles) {
  Plot plot{{50, 20, 100, 200}, make_axis("step", {0, 10}, false, 2), make_axis("loss (nats)", {1, 2}, false, 2)};
  fit(plot);
  EXPECT_EQ(plot.x.scale(10), 150);
  EXPECT_EQ(plot.y.scale(1), 220);
  Svg svg;
  draw_axes(svg, plot);
  const std::string text = svg.take();
  EXPECT_EQ(testing::xml_problem(text), "");
  EXPECT_EQ(testing::count(text, "class=\"grid\""), plot.y.ticks.size());
  EXPECT_THAT(text, HasSubstr(">loss (nats)</text>"));
  EXPECT_THAT(text, HasSubstr(">step</text>"));
}

TEST(DrawAxes, WithoutLabelsANeighbourServes) {
  Plot plot{{50, 20, 100, 200}, make_axis("", {0, 10}, false, 2), make_axis("", {1, 2}, false, 2)};
  plot.x.labels.clear();
  plot.y.labels.clear();
  fit(plot);
  Svg svg;
  draw_axes(svg, plot);
  EXPECT_THAT(svg.take(), Not(HasSubstr("<text")));
}

TEST(Plot, LabelsThatWouldTouchAreLeftOutEvenly) {
  const auto drawn = [](double width) {
    Plot plot{{0, 0, width, 50}, make_axis("", {0, 2000}, false, 4), {}};
    fit(plot);
    Svg svg;
    draw_axes(svg, plot);
    return svg.take();
  };
  EXPECT_THAT(drawn(400), HasSubstr(">1,500<"));
  const std::string narrow = drawn(140);
  EXPECT_THAT(narrow, HasSubstr(">2,000<"));
  EXPECT_THAT(narrow, Not(HasSubstr(">1,500<")));
  EXPECT_THAT(narrow, HasSubstr(">1,000<"));
  EXPECT_THAT(narrow, HasSubstr(">0<"));
}

TEST(DrawXLabel, StaysClearOfTheNeighbours) {
  Svg svg;
  draw_x_label(svg, {0, 0, 100, 50}, 0, "10,000");
  EXPECT_EQ(svg.take(), "<text x=\"-2\" y=\"68\">10,000</text>");
  draw_x_label(svg, {0, 0, 100, 50}, 100, "10,000");
  EXPECT_EQ(svg.take(), "<text class=\"end\" x=\"102\" y=\"68\">10,000</text>");
  draw_x_label(svg, {0, 0, 100, 50}, 50, "5");
  EXPECT_EQ(svg.take(), "<text class=\"middle\" x=\"50\" y=\"68\">5</text>");
}

}  // namespace
}  // namespace normlab
