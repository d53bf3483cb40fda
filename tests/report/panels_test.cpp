// Tests of small multiples.
#include "normlab/report/panels.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "normlab/base/text.h"
#include "xml_check.h"

namespace normlab {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

Panels sample(std::size_t count) {
  Panels chart{{"folds", "By fold", "", ""}, {{"step", "training step"}}, {"loss (nats)", true}, {}};
  const auto styles = ordered_styles(2, 0);
  for (std::size_t i = 0; i < count; ++i) {
    const double shift = static_cast<double>(i);
    chart.panels.push_back({concat("fold ", i + 1),
                            {{"p = 2", styles[0], {{0, 1, 2}}, {3 + shift, 2 + shift, 1 + shift}},
                             {"p = 3", styles[1], {{0, 1, 2}}, {3 + shift, 2 + shift, 0.5 + shift}}}});
  }
  return chart;
}

std::string attribute(const std::string& text, const std::string& name, std::size_t from) {
  const std::size_t at = text.find(name + "=\"", from) + name.size() + 2;
  return text.substr(at, text.find('"', at) - at);
}

TEST(Panels, ShareTheirAxes) {
  for (const std::size_t count : {1u, 3u, 7u, 10u}) {
    const Figure made = figure(sample(count));
    for (const Drawing* drawing : {&made.wide, &made.narrow}) {
      const std::string& view = drawing->views[0];
      EXPECT_EQ(testing::xml_problem(view), "");
      EXPECT_EQ(testing::count(view, "class=\"plot\""), count);
      std::set<std::string> domains, frames;
      for (std::size_t at = view.find("class=\"plot\""); at != std::string::npos;
           at = view.find("class=\"plot\"", at + 1)) {
        domains.insert(attribute(view, "data-domain", at));
        frames.insert(attribute(view, "data-frame", at));
      }
      EXPECT_EQ(domains.size(), 1u);
      EXPECT_EQ(frames.size(), count);
    }
  }
}

TEST(Panels, AtMostSoManyColumns) {
  Panels chart = sample(4);
  const double flat = figure(chart).wide.height;
  chart.most_columns = 2;
  EXPECT_GT(figure(chart).wide.height, 1.5 * flat);
}

TEST(Panels, OneLegendWithoutValues) {
  const Figure made = figure(sample(4));
  EXPECT_EQ(testing::count(made.wide.body, "class=\"tone key"), 2u);
  EXPECT_EQ(testing::count(made.wide.views[0], "class=\"tone key"), 0u);
  EXPECT_THAT(made.wide.body, Not(HasSubstr("2.500")));  // the mean over panels would mislead
}

TEST(Panels, AMissingTrialKeepsTheNumbersOfTheOthers) {
  Panels chart = sample(3);
  chart.panels[1].series.erase(chart.panels[1].series.begin());
  const Figure made = figure(chart);
  const std::string& view = made.wide.views[0];
  const std::string second =
      view.substr(view.find("data-plot=\"1\""), view.find("data-plot=\"2\"") - view.find("data-plot=\"1\""));
  EXPECT_THAT(second, HasSubstr("data-series=\"1\""));
  EXPECT_EQ(testing::count(second, "data-series"), 1u);
  ASSERT_EQ(made.data.rows.size(), 3u);
  EXPECT_TRUE(std::isnan(*made.data.rows[1][1].number));
  EXPECT_EQ(made.data.rows[1][2].number, 1.5);
}

TEST(Panels, NoPanelsAtAll) { EXPECT_NO_THROW(render(sample(0))); }

}  // namespace
}  // namespace normlab
