// Tests of row charts' frames.
#include "normlab/report/rows.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "normlab/base/text.h"
#include "xml_check.h"

namespace normlab {
namespace {

using ::testing::HasSubstr;

std::vector<ChartRow> sample(const std::string& name) {
  const auto styles = ordered_styles(2, 1);
  return {{name, styles[0], {"+0.1"}}, {"base", styles[1], {"0.0"}}};
}

TEST(Rows, NamesAtTheLeftWhereThereIsRoom) {
  const RowLayout layout{.top = 10, .row_height = 40, .head = 0, .note_titles = {"difference"}};
  const auto rows = sample("p = 1");
  const RowPlot plot = make_row_plot(wide_canvas, make_axis("loss", {0, 1}, false, 4), rows, layout);
  EXPECT_FALSE(plot.names_above);
  EXPECT_EQ(plot.middle(1) - plot.middle(0), 40);
  EXPECT_EQ(plot.columns.back(), wide_canvas.width);
  EXPECT_LT(plot.area.right(), wide_canvas.width - 40);
}

TEST(Rows, LongNamesGoAbove) {
  const RowLayout layout{.top = 10, .row_height = 40, .head = 0, .note_titles = {"difference"}};
  const auto rows = sample(std::string(200, 'x'));
  for (const Canvas& canvas : {wide_canvas, narrow_canvas}) {
    const RowPlot plot = make_row_plot(canvas, make_axis("loss", {0, 1}, false, 4), rows, layout);
    EXPECT_TRUE(plot.names_above);
    EXPECT_GT(plot.area.width, 0.9 * canvas.width);
    Svg svg;
    draw_rows(svg, plot, rows, layout);
    const std::string text = svg.take();
    EXPECT_EQ(testing::xml_problem(text), "");
    EXPECT_THAT(text, HasSubstr("x…x"));
    EXPECT_THAT(text, HasSubstr(">difference</text>"));
    EXPECT_EQ(testing::count(text, "class=\"tone key"), 2u);
  }
}

TEST(Rows, DotsStayNearTheirRowAndSkipMissingValues) {
  const auto rows = sample("p = 1");
  const RowLayout layout{.top = 0, .row_height = 40, .head = 0, .note_titles = {"difference"}};
  const RowPlot plot = make_row_plot(wide_canvas, make_axis("loss", {0, 1}, false, 4), rows, layout);
  Svg svg;
  draw_value_dots(svg, plot, 20, std::vector<double>{0.1, HUGE_VAL, 0.1}, "fold");
  const std::string text = svg.take();
  EXPECT_EQ(testing::count(text, "<circle"), 2u);
  EXPECT_THAT(text, HasSubstr("<title>fold 3: 0.1000</title>"));
}

}  // namespace
}  // namespace normlab
