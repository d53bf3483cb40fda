// Tests of line charts.
#include "normlab/report/line_chart.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "normlab/base/error.h"
#include "normlab/base/text.h"
#include "xml_check.h"

namespace normlab {
namespace {

using ::testing::HasSubstr;

LineChart sample(std::size_t count) {
  LineChart chart{{"loss", "Validation loss", "Bands are ± 1 standard error.", "Curves."},
                  {{"step", "training step"}, {"time", "time (min)"}},
                  {"validation loss (nats)", true},
                  {}};
  const auto styles = ordered_styles(count, 0);
  for (std::size_t i = 0; i < count; ++i) {
    Series series{concat("p = ", i + 1), styles[i], {{}, {}}, {}, {}, {}};
    for (int step = 0; step <= 100; ++step) {
      series.x[0].push_back(step);
      series.x[1].push_back(step * 0.1 * (1 + 0.1 * static_cast<double>(i)));
      series.y.push_back(1.5 + 0.01 * static_cast<double>(i) + 2 * std::exp(-0.1 * step));
      series.low.push_back(series.y.back() - 0.1);
      series.high.push_back(series.y.back() + 0.1);
    }
    chart.series.push_back(series);
  }
  return chart;
}

TEST(LineChart, EveryViewHasEverySeries) {
  const Figure made = figure(sample(7));
  for (const Drawing* drawing : {&made.wide, &made.narrow}) {
    ASSERT_EQ(drawing->views.size(), 4u);  // step and time, linear and log
    for (const std::string& view : drawing->views) {
      EXPECT_EQ(testing::xml_problem(view), "");
      EXPECT_EQ(testing::count(view, "class=\"line\"") - testing::count(view, "class=\"tone key"), 7u);
      EXPECT_EQ(testing::count(view, "class=\"band\""), 7u);
    }
  }
}

TEST(LineChart, KeysAtTheEndsOrInALegendButNeverBoth) {
  const Figure few = figure(sample(7)), many = figure(sample(40));
  EXPECT_EQ(testing::count(few.wide.views[0], "class=\"tone key"), 7u);
  EXPECT_EQ(testing::count(few.wide.body, "class=\"tone key"), 0u);
  EXPECT_EQ(testing::count(few.narrow.views[0], "class=\"tone key"), 0u);
  EXPECT_EQ(testing::count(few.narrow.body, "class=\"tone key"), 7u);
  EXPECT_EQ(testing::count(many.wide.body, "class=\"tone key"), 40u);
}

TEST(LineChart, FileIsWellFormedAndSmall) {
  const std::string file = svg_file(figure(sample(7)));
  EXPECT_EQ(testing::xml_problem(file), "");
  EXPECT_LT(file.size(), 40000u);
  EXPECT_EQ(testing::count(file, "class=\"view"), 1u);
}

TEST(LineChart, TableHasFirstAndLastStep) {
  const Table table = figure(sample(3)).data;
  ASSERT_EQ(table.columns.size(), 4u);
  EXPECT_EQ(table.rows.size(), 24u);
  EXPECT_EQ(table.rows.front()[0].number, 0);
  EXPECT_EQ(table.rows.back()[0].number, 100);
  EXPECT_NEAR(*table.rows.back()[3].number, 1.52, 1e-3);
}

TEST(LineChart, UnfinishedAndEmptySeriesAreFine) {
  LineChart chart = sample(3);
  chart.series[1].y.assign(101, std::nan(""));
  chart.series[2] = {"p = 3", chart.series[2].style, {{}, {}}, {}};
  const std::string text = render(chart).text;
  EXPECT_EQ(testing::count(text, ">no data</text>"), 2u * 4 + 2);  // at the ends in four views, once in the legend
  chart.series.clear();
  EXPECT_THAT(render(chart).text, HasSubstr("no data yet"));
  chart.x.clear();
  EXPECT_NO_THROW(render(chart));
}

TEST(LineChart, RefusesSeriesThatDoNotFit) {
  LineChart chart = sample(2);
  chart.series[0].y.pop_back();
  EXPECT_THROW(figure(chart), Error);
}

}  // namespace
}  // namespace normlab
