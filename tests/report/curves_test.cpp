// Tests of curves: views, keys, ranges, gaps.
#include "normlab/report/curves.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "normlab/base/error.h"
#include "xml_check.h"

namespace normlab {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr double nan = std::numeric_limits<double>::quiet_NaN();

struct Sample {
  std::vector<XAxis> x = {{"step", "training step"}, {"end", "training step", 20}};
  YAxis y = {"loss (nats)", true};
  std::vector<Series> series;
  Sample() {
    const auto styles = ordered_styles(2, 0);
    const std::vector<double> steps = {0, 10, 20, 30};
    series = {{"p = 2", styles[0], {steps, steps}, {4, 3, 2, 1.5}, {3.9, 2.9, 1.9, 1.4}, {4.1, 3.1, 2.1, 1.6}},
              {"p = 3", styles[1], {steps, steps}, {4, nan, 1.8, 1.2}}};
  }
  CurveSet set() const { return {x, y, {series}}; }
  std::string draw(View view) const {
    Plot plot{{0, 0, 300, 100},
              make_axis("", x_range(set(), view), false, 4),
              make_axis("", y_range(set(), view), view.log, 4)};
    fit(plot);
    Svg svg;
    draw_curves(svg, plot, set(), {view, 0, 100});
    return svg.take();
  }
};

TEST(Curves, RangesFollowTheView) {
  const Sample sample;
  EXPECT_EQ(x_range(sample.set(), {0, false}).low, 0);
  EXPECT_EQ(x_range(sample.set(), {1, false}).low, 20);
  EXPECT_GT(y_range(sample.set(), {0, false}).high, 4.1);
  EXPECT_LT(y_range(sample.set(), {1, false}).high, 2.2);
}

TEST(Curves, LogIsOfferedOnlyForPositiveValues) {
  Sample sample;
  EXPECT_EQ(views(sample.set()).size(), 4u);
  EXPECT_EQ(switches(sample.set())[1].options.size(), 2u);
  sample.series[0].low[3] = 0;
  EXPECT_EQ(views(sample.set()).size(), 2u);
  EXPECT_EQ(switches(sample.set())[1].options.size(), 1u);
}

TEST(Curves, LogCanComeFirst) {
  Sample sample;
  sample.y.log_first = true;
  EXPECT_TRUE(views(sample.set())[0].log);
  EXPECT_EQ(switches(sample.set())[1].options, (std::vector<std::string>{"log", "linear"}));
  for (const View view : views(sample.set())) {
    Svg svg;
    open_view(svg, view);
    svg.close();
    const std::string text = svg.take();
    EXPECT_THAT(text, HasSubstr(view.log ? "data-y=\"0\"" : "data-y=\"1\""));
    EXPECT_EQ(text.find("view first") != std::string::npos, view.log && view.x_axis == 0);
  }
  sample.series[0].low[3] = 0;
  EXPECT_FALSE(views(sample.set())[0].log);
  EXPECT_EQ(views(sample.set())[0].y_option, 0u);
}

TEST(Curves, KeysAreOrderedByTheLastValue) {
  Sample sample;
  auto found = keys(sample.set());
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[0].label, "p = 2");
  EXPECT_EQ(found[1].last, 1.2);
  sample.series[1].y.back() = nan;  // diverged
  found = keys(sample.set());
  EXPECT_EQ(found[0].label, "p = 3");
  EXPECT_TRUE(std::isinf(found[0].last));
  sample.series[1].y = {nan, nan, nan, nan};
  EXPECT_TRUE(std::isnan(keys(sample.set())[1].last));
}

TEST(Curves, GapsBreakTheLineAndSinglePointsShow) {
  const std::string text = Sample().draw({0, false});
  EXPECT_EQ(testing::xml_problem(text), "");
  const std::size_t at = text.find("data-series=\"1\"");
  const std::string line = text.substr(text.find("d=\"", at), 60);
  EXPECT_EQ(testing::count(line.substr(0, line.find("\" ")), "M"), 2u) << line;
  EXPECT_THAT(line, HasSubstr("l0 0"));  // the point before the gap
}

TEST(Curves, BandsBelowLinesBaselineOnTop) {
  const std::string text = Sample().draw({0, false});
  EXPECT_LT(text.find("class=\"band\""), text.find("class=\"line\""));
  EXPECT_GT(text.rfind("series baseline"), text.rfind("data-series=\"1\""));
  EXPECT_EQ(testing::count(text, "class=\"band\""), 1u);
}

TEST(Curves, ScriptFindsFrameAndDomain) {
  const std::string text = Sample().draw({1, true});
  EXPECT_THAT(text, HasSubstr("data-frame=\"0 0 300 100\""));
  EXPECT_THAT(text, HasSubstr("data-domain=\"20 30 "));
  EXPECT_THAT(text, HasSubstr("data-log=\"1\""));
}

TEST(Curves, NothingToDrawSaysSo) {
  Sample sample;
  EXPECT_THAT(sample.draw({0, false}), Not(HasSubstr("no data yet")));
  for (Series& series : sample.series) series = {series.label, series.style, {{}, {}}, {}};
  EXPECT_THAT(sample.draw({0, false}), HasSubstr("no data yet"));
}

TEST(Curves, CheckRefusesWhatDoesNotFit) {
  Sample sample;
  EXPECT_NO_THROW(check_curves(sample.set(), "test"));
  sample.series[0].x.pop_back();
  EXPECT_THROW(check_curves(sample.set(), "test"), Error);
  sample = Sample();
  sample.series[0].low.pop_back();
  EXPECT_THROW(check_curves(sample.set(), "test"), Error);
  sample = Sample();
  sample.series[0].x[1].pop_back();
  EXPECT_THROW(check_curves(sample.set(), "test"), Error);
  sample = Sample();
  sample.x.resize(5);
  EXPECT_THROW(check_curves(sample.set(), "test"), Error);
}

}  // namespace
}  // namespace normlab
