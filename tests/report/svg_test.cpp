// Tests of the SVG writer.
#include "normlab/report/svg.h"

#include <gtest/gtest.h>

#include <cmath>

#include "normlab/base/error.h"

namespace normlab {
namespace {

TEST(Escape, MarkupAndQuotes) {
  EXPECT_EQ(escape("<a b=\"c\" d='e'>&"), "&lt;a b=&quot;c&quot; d=&#39;e&#39;&gt;&amp;");
}

TEST(Escape, KeepsTextInAnyLanguage) { EXPECT_EQ(escape("p ≥ 2 · größer 数 😀"), "p ≥ 2 · größer 数 😀"); }

TEST(Escape, DropsWhatXmlForbids) {
  EXPECT_EQ(escape(std::string("a\x01\x1f\0b\tc\nd", 9)), "ab\tc\nd");
  EXPECT_EQ(escape("\xEF\xBF\xBF"), "\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD");  // U+FFFF
}

TEST(Escape, BrokenUtf8BecomesReplacementCharacters) {
  const std::string bad = "\xEF\xBF\xBD";
  EXPECT_EQ(escape("a\xFF z"), "a" + bad + " z");
  EXPECT_EQ(escape("\xC3"), bad);                                // cut off
  EXPECT_EQ(escape("\xC0\x80"), bad + bad);                      // overlong
  EXPECT_EQ(escape("\xED\xA0\x80"), bad + bad + bad);            // a surrogate
  EXPECT_EQ(escape("\xF4\x90\x80\x80"), bad + bad + bad + bad);  // above U+10FFFF
  EXPECT_EQ(escape("\xE2\x28\xA1"), bad + "(" + bad);
}

TEST(Px, OneDecimalAtMost) {
  EXPECT_EQ(px(12), "12");
  EXPECT_EQ(px(12.34), "12.3");
  EXPECT_EQ(px(-0.04), "0");
  EXPECT_EQ(px(-0.5), "-0.5");
  EXPECT_THROW(px(std::nan("")), Error);
  EXPECT_THROW(px(HUGE_VAL), Error);
}

TEST(Svg, WritesElementsWithEscapedAttributes) {
  Svg svg;
  svg.open("g", {{"class", "a\"b"}});
  svg.text(1, 2.5, "x < y", {{"class", "t"}});
  svg.element("path", {{"d", "M0 0"}, {"stroke-dasharray", ""}}, "says <this>");
  svg.close();
  EXPECT_EQ(svg.take(),
            "<g class=\"a&quot;b\"><text class=\"t\" x=\"1\" y=\"2.5\">x &lt; y</text>"
            "<path d=\"M0 0\"><title>says &lt;this&gt;</title></path></g>\n");
}

TEST(Svg, RefusesOpenGroups) {
  Svg svg;
  svg.open("g");
  EXPECT_THROW(svg.take(), Error);
}

TEST(PathData, RelativeTenths) {
  PathData path;
  path.move(10, 20);
  path.line(15.5, 18);
  path.line(14, 18.04);
  path.line(20, 30);
  path.close();
  EXPECT_EQ(path.take(), "M10 20l5.5-2-1.5 0 6 12z");
}

TEST(PathData, BoxesMeetWithoutGaps) {
  PathData path;
  path.box(0, 0, 8.26, 8.26);
  path.box(8.26, 0, 8.26, 8.26);
  EXPECT_EQ(path.take(), "M0 0h8.3v8.3h-8.3zM8.3 0h8.2v8.3h-8.2z");
}

TEST(PathData, RoundingDoesNotAddUp) {
  PathData path;
  path.move(0, 0);
  for (int i = 1; i <= 1000; ++i) path.line(0.04 * i, 0);
  std::string data = path.take();
  double x = 0;
  for (std::size_t at = data.find('l') + 1; at < data.size();) {
    std::size_t used = 0;
    x += std::stod(data.substr(at), &used);
    at += used + 2;  // " 0"
    while (at < data.size() && data[at] == ' ') ++at;
  }
  EXPECT_NEAR(x, 40, 0.051);
}

}  // namespace
}  // namespace normlab
