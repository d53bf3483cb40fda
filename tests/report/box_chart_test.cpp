// Tests of box plots.
#include "normlab/report/box_chart.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "normlab/base/error.h"
#include "xml_check.h"

namespace normlab {
namespace {

using ::testing::HasSubstr;

TEST(BoxChart, EveryPartIsDrawn) {
  const auto styles = ordered_styles(3, 1);
  const BoxChart chart{{"time", "Training time", "", ""},
                       "training time (s)",
                       "fold",
                       {{"p = 1", styles[0], {7, 15, 36, 39, 40, 41, 100}},
                        {"p = 2", styles[1], {}},
                        {"p = 3", styles[2], {50, std::nan("")}}}};
  const Figure made = figure(chart);
  for (const Drawing* drawing : {&made.wide, &made.narrow}) {
    EXPECT_EQ(testing::xml_problem(drawing->body), "");
    // Fewer than five values are drawn as they are.
    EXPECT_EQ(testing::count(drawing->body, "class=\"box\""), 1u);
    EXPECT_EQ(testing::count(drawing->body, "class=\"median\""), 1u);
    EXPECT_EQ(testing::count(drawing->body, "class=\"mean\""), 1u);
    EXPECT_EQ(testing::count(drawing->body, "class=\"outlier\""), 1u);
    EXPECT_EQ(testing::count(drawing->body, "class=\"dot\""), 8u);
    EXPECT_THAT(drawing->body, HasSubstr("no data yet"));
  }
  EXPECT_EQ(made.data.rows[0][5].number, 39);
  EXPECT_EQ(made.data.rows[0][7].number, 41);  // 100 is an outlier
  EXPECT_EQ(made.data.rows[2][1].number, 1);
  EXPECT_TRUE(std::isnan(*made.data.rows[1][2].number));
  EXPECT_NO_THROW(render(BoxChart{{"e", "Empty", "", ""}, "s", "fold", {}}));
}

TEST(BoxChart, NotesStandBesideTheBoxes) {
  const auto styles = ordered_styles(1);
  BoxChart chart{{"time", "Training time", "", ""}, "s", "fold", {{"p = 1", styles[0], {7, 8}, {"7.5"}}}, {"median"}};
  for (const char* text : {">median</text>", ">7.5</text>"}) EXPECT_THAT(figure(chart).wide.body, HasSubstr(text));
  chart.boxes[0].notes.clear();
  EXPECT_THROW(figure(chart), Error);
}

}  // namespace
}  // namespace normlab
