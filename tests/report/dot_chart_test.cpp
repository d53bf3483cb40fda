// Tests of values over categories.
#include "normlab/report/dot_chart.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "normlab/base/error.h"
#include "xml_check.h"

namespace normlab {
namespace {

using ::testing::HasSubstr;

DotChart sample() {
  const auto styles = ordered_styles(2);
  return {{"gains", "Gains", "", ""},
          {"1", "2", "inf"},
          "p",
          "learned gain",
          {{"layer 1", styles[0], {3, 2, 1}, {2.5, 1.5, 0.5}, {3.5, 2.5, 1.5}, {{3, 3.1}, {2}, {}}},
           {"layer 2", styles[1], {4, std::nan(""), 2}}}};
}

TEST(DotChart, MarksIntervalsAndFolds) {
  const Figure made = figure(sample());
  for (const Drawing* drawing : {&made.wide, &made.narrow}) {
    EXPECT_EQ(testing::xml_problem(drawing->body), "");
    EXPECT_EQ(testing::count(drawing->body, "class=\"interval\""), 3u);
    EXPECT_EQ(testing::count(drawing->body, "class=\"dot\""), 3u);
    EXPECT_EQ(testing::count(drawing->body, "class=\"mark\""), 5u + 2);  // five means, two keys
    EXPECT_THAT(drawing->body, HasSubstr("layer 1, inf: 1.000 (0.5000 to 1.500)"));
  }
  ASSERT_EQ(made.data.rows.size(), 3u);
  EXPECT_EQ(made.data.rows[2][1].number, 1);
}

TEST(DotChart, AMissingMeanLeavesAGap) {
  const std::string body = figure(sample()).wide.body;
  const std::size_t first = body.find("class=\"thin line\""), second = body.find("class=\"thin line\"", first + 1);
  EXPECT_EQ(testing::count(body.substr(first, body.find("/>", first) - first), "M"), 1u);
  EXPECT_EQ(testing::count(body.substr(second, body.find("/>", second) - second), "M"), 2u);
}

TEST(DotChart, LogarithmicUnlessAValueIsNotPositive) {
  DotChart chart = sample();
  chart.log = true;
  const std::string log = figure(chart).wide.body;
  EXPECT_NE(log, figure(sample()).wide.body);
  chart.series[0].low[2] = 0;
  DotChart linear = chart;
  linear.log = false;
  EXPECT_EQ(figure(chart).wide.body, figure(linear).wide.body);
}

TEST(DotChart, SeriesMustFitTheCategories) {
  DotChart chart = sample();
  chart.series[0].mean.pop_back();
  EXPECT_THROW(figure(chart), Error);
  chart = sample();
  chart.series[0].low.pop_back();
  EXPECT_THROW(figure(chart), Error);
  chart = sample();
  chart.series[0].values.pop_back();
  EXPECT_THROW(figure(chart), Error);
}

TEST(DotChart, Empty) { EXPECT_NO_THROW(render(DotChart{{"e", "Empty", "", ""}, {}, "p", "gain", {}})); }

}  // namespace
}  // namespace normlab
