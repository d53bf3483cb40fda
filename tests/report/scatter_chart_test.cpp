// Tests of points over two numbers.
#include "normlab/report/scatter_chart.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "normlab/base/error.h"
#include "xml_check.h"

namespace normlab {
namespace {

using ::testing::HasSubstr;

ScatterChart sample() {
  const auto styles = category_styles(2);
  ScatterSeries both{.label = "a < b", .style = styles[0], .x = {1, 10, 100}, .y = {3, 2, 1}};
  both.low = {2.5, 1.5, 0.5}, both.high = {3.5, 2.5, 1.5};
  both.line_x = {1, 10, 100}, both.line_y = {3, std::nan(""), 1};
  both.band_low = {2, 1.5, 0.5}, both.band_high = {4, 3, 2};
  return {
      .caption = {"scatter", "Scatter", "", ""},
      .x_title = "compute",
      .y_title = "loss",
      .series = {both, {.label = "line", .style = styles[1], .x = {}, .y = {}, .line_x = {1, 100}, .line_y = {2, 2}}},
      .log_x = true,
      .log_y = true};
}

TEST(ScatterChart, MarksIntervalsLinesAndBands) {
  const Figure made = figure(sample());
  for (const Drawing* drawing : {&made.wide, &made.narrow}) {
    EXPECT_EQ(testing::xml_problem(drawing->body), "");
    EXPECT_EQ(testing::count(drawing->body, "class=\"interval\""), 3u);
    EXPECT_EQ(testing::count(drawing->body, "class=\"mark\""), 3u + 1);  // three points and a key
    EXPECT_EQ(testing::count(drawing->body, "class=\"band\""), 1u);
    EXPECT_THAT(drawing->body, HasSubstr("a &lt; b: 2.000 at 10.00 (1.500 to 2.500)"));
  }
  ASSERT_EQ(made.data.rows.size(), 3u + 2);  // the points, and those of the line without any
  EXPECT_EQ(made.data.rows[1][3].number, 1.5);
  EXPECT_EQ(made.data.rows[4][1].number, 100);
}

TEST(ScatterChart, AxesAreLogarithmicUnlessAValueIsNotPositive) {
  ScatterChart chart = sample();
  chart.series[0].low[2] = 0;
  const std::string body = figure(chart).wide.body;
  chart.log_y = false;
  EXPECT_EQ(body, figure(chart).wide.body);
  chart.log_x = false;
  EXPECT_NE(body, figure(chart).wide.body);
}

TEST(ScatterChart, TheRuleIsInTheRange) {
  ScatterChart chart = sample();
  chart.log_y = false;
  chart.rule = -5.0;
  EXPECT_EQ(testing::count(figure(chart).wide.body, "class=\"zero\""), 1u);
  EXPECT_THAT(figure(chart).wide.body, HasSubstr("\xE2\x88\x92"
                                                 "4"));  // a tick at -4, with a true minus sign
}

TEST(ScatterChart, RefusesListsOfOtherLengths) {
  ScatterChart chart = sample();
  chart.series[0].band_high.pop_back();
  EXPECT_THROW(figure(chart), Error);
  chart = sample();
  chart.series[0].x.pop_back();
  EXPECT_THROW(figure(chart), Error);
}

}  // namespace
}  // namespace normlab
