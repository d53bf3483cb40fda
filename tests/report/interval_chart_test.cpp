// Tests of paired differences.
#include "normlab/report/interval_chart.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "normlab/base/error.h"
#include "xml_check.h"

namespace normlab {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

IntervalChart sample() {
  const auto styles = ordered_styles(2);
  return {{"differences", "Differences", "95 % intervals", ""},
          "difference (nats)",
          "fold",
          "better than p = 2",
          "worse than p = 2",
          {"Holm p"},
          {{"p = 1", styles[0], 0.02, 0.01, 0.03, {0.01, 0.03}, {"0.2"}},
           {"p = 3", styles[1], -0.02, -0.03, -0.01, {-0.01, -0.03}, {"0.004"}}}};
}

TEST(IntervalChart, MeanIntervalFoldsAndZero) {
  const Figure made = figure(sample());
  for (const Drawing* drawing : {&made.wide, &made.narrow}) {
    EXPECT_EQ(testing::xml_problem(drawing->body), "");
    EXPECT_EQ(testing::count(drawing->body, "class=\"interval\""), 2u);
    EXPECT_EQ(testing::count(drawing->body, "class=\"dot\""), 4u);
    EXPECT_EQ(testing::count(drawing->body, "class=\"mark\""), 2u);
    EXPECT_EQ(testing::count(drawing->body, "class=\"zero\""), 1u);
    EXPECT_THAT(drawing->body, HasSubstr(">0.004</text>"));
    EXPECT_THAT(drawing->body, HasSubstr("p = 3: −0.0200, interval −0.0300 to −0.0100"));
  }
  EXPECT_THAT(made.wide.body, HasSubstr("← better than p = 2"));
  EXPECT_EQ(made.data.rows[1][2].number, -0.03);
}

TEST(IntervalChart, NeighboursShareTheirAxis) {
  IntervalChart chart = sample();
  EXPECT_THAT(figure(chart).wide.body, Not(HasSubstr(">0.4</text>")));
  chart.shared = {-0.1, 0.42};
  EXPECT_THAT(figure(chart).wide.body, HasSubstr(">0.4</text>"));
}

TEST(IntervalChart, SidesSayLessWhereThereIsLessRoom) {
  IntervalChart chart = sample();
  chart.intervals[1].mean = -0.0005, chart.intervals[1].low = -0.001, chart.intervals[1].high = 0,
  chart.intervals[1].values = {};
  EXPECT_THAT(figure(chart).narrow.body, Not(HasSubstr("better")));
  EXPECT_THAT(figure(chart).narrow.body, HasSubstr("worse than p = 2 →"));
}

TEST(IntervalChart, MissingValues) {
  IntervalChart chart = sample();
  chart.intervals[0].mean = std::nan("");
  chart.intervals[1].low = chart.intervals[1].high = std::nan("");  // one fold has no interval
  const std::string text = figure(chart).wide.body;
  EXPECT_THAT(text, HasSubstr("no data yet"));
  EXPECT_EQ(testing::count(text, "class=\"interval\""), 0u);
  EXPECT_EQ(testing::count(text, "class=\"mark\""), 1u);
  chart.intervals.clear();
  EXPECT_NO_THROW(render(chart));
}

TEST(IntervalChart, NotesMustFitTheirTitles) {
  IntervalChart chart = sample();
  chart.intervals[0].notes.clear();
  EXPECT_THROW(figure(chart), Error);
}

}  // namespace
}  // namespace normlab
