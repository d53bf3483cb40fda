// Tests of histograms.
#include "normlab/report/histogram.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "normlab/base/error.h"
#include "xml_check.h"

namespace normlab {
namespace {

using ::testing::HasSubstr;

Histogram sample() {
  return {.caption = {"h", "Logits", "", ""},
          .x_title = "logit",
          .y_title = "share",
          .low = -2,
          .high = 2,
          .shares = {0.5, 0, 0.4999, 0.0001}};
}

TEST(Histogram, ABarForEachBinThatHasValues) {
  const Figure made = figure(sample());
  for (const Drawing* drawing : {&made.wide, &made.narrow}) {
    ASSERT_EQ(drawing->views.size(), 3u);  // linear, log, and what answers to the pointer
    for (std::size_t i = 0; i < 2; ++i) {
      const std::string& view = drawing->views[i];
      EXPECT_EQ(testing::xml_problem(view), "");
      const std::size_t at = view.find("class=\"bars\"");
      ASSERT_NE(at, std::string::npos);
      EXPECT_EQ(testing::count(view.substr(at, view.find("/>", at) - at), "z"), 3u);
    }
    EXPECT_THAT(drawing->views[0], HasSubstr(">0.0<"));  // the linear axis starts at 0
    EXPECT_THAT(drawing->views[2], HasSubstr("−1.00 to 0.00: 0 %"));
    EXPECT_EQ(testing::count(drawing->views[2], "<title>"), 4u);
  }
  ASSERT_EQ(made.switches.size(), 1u);
  EXPECT_EQ(made.switches[0].options, (std::vector<std::string>{"linear", "log"}));
  EXPECT_EQ(made.data.rows[3][0].text, "1.00 to 2.00");
  EXPECT_EQ(made.data.rows[3][1].number, 0.0001);
}

TEST(Histogram, RefusesNoBins) {
  Histogram chart = sample();
  chart.high = chart.low;
  EXPECT_THROW(figure(chart), Error);
  chart = sample();
  chart.shares.clear();
  EXPECT_THROW(figure(chart), Error);
  chart.shares = {0, 0};
  EXPECT_NO_THROW(figure(chart));
}

}  // namespace
}  // namespace normlab
