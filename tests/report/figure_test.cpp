// Tests of figures: the HTML around a chart and the file of its own.
#include "normlab/report/figure.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "xml_check.h"

namespace normlab {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

Figure sample() {
  const std::vector<std::string> views = {"<g class=\"view first\" data-x=\"0\"/>", "<g class=\"view\" data-x=\"1\"/>"};
  return {{"Loss <1>", "Loss & time", "Bands are <2>.", "A \"line\""},
          {100, "<path d=\"M0 0\"/>", views},
          {150, "<path d=\"M1 1\"/>", views},
          {{"x", "x axis", {"step", "time"}}, {"y", "y axis", {"linear"}}},
          R"({"labels":["</script><b>"]})",
          {"numbers", {{"a"}}, {{number_cell(1)}}}};
}

TEST(Figure, HtmlHasBothDrawingsSwitchesAndNumbers) {
  const std::string text = html(sample()).text;
  EXPECT_EQ(testing::count(text, "<svg "), 2u);
  EXPECT_THAT(text, HasSubstr("<figure id=\"loss-1\">"));
  EXPECT_THAT(text, HasSubstr("viewBox=\"0 0 880 100\" class=\"chart wide\""));
  EXPECT_THAT(text, HasSubstr("viewBox=\"0 0 360 150\" class=\"chart narrow\""));
  EXPECT_EQ(testing::count(text, "type=\"radio\""), 2u);  // a switch with one option is none
  EXPECT_THAT(text, HasSubstr("<details><summary>Show the numbers</summary>"));
}

TEST(Figure, TitleAndDescriptionAreTiedToTheChart) {
  const std::string text = html(sample()).text;
  EXPECT_THAT(text, HasSubstr("aria-labelledby=\"loss-1-wide-title\" aria-describedby=\"loss-1-wide-desc\""));
  EXPECT_THAT(text, HasSubstr("<title id=\"loss-1-wide-title\">Loss &amp; time</title>"));
  EXPECT_THAT(text, HasSubstr("<desc id=\"loss-1-narrow-desc\">A &quot;line&quot;</desc>"));
}

TEST(Figure, HoverValuesCannotEndTheScript) {
  const std::string text = html(sample()).text;
  EXPECT_EQ(testing::count(text, "</script>"), 1u);
  EXPECT_THAT(text, HasSubstr("\\u003c/script>"));
}

TEST(Figure, FileStandsAlone) {
  const std::string text = svg_file(sample());
  EXPECT_EQ(testing::xml_problem(text), "");
  EXPECT_THAT(text, HasSubstr("width=\"912\" height=\"132\" viewBox=\"-16 -16 912 132\""));
  EXPECT_THAT(text, HasSubstr("<style>"));
  EXPECT_EQ(testing::count(text, "class=\"view"), 1u);
  EXPECT_THAT(text, Not(HasSubstr("http://www.w3.org/1999")));
}

TEST(DrawHeading, WrapsInNarrowWindows) {
  const Caption caption{"a", "A title that is far too long for one line of a narrow window", "And a note.", ""};
  Svg wide, narrow;
  EXPECT_LT(draw_heading(wide, wide_canvas, caption), draw_heading(narrow, narrow_canvas, caption));
  EXPECT_EQ(testing::count(wide.take(), "<text"), 2u);
  EXPECT_EQ(testing::count(narrow.take(), "<text"), 3u);
}

}  // namespace
}  // namespace normlab
