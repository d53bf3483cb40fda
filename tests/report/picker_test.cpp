// Tests of pickers.
#include "normlab/report/picker.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "normlab/report/palette.h"
#include "xml_check.h"

namespace normlab {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(Picker, OneButtonAndOnePanelForEachChoice) {
  const std::string evil = "</style><script>alert(1)</script>\"'";
  Picker picker{.id = "Heads <1>", .title = evil, .note = evil, .grids = {}, .chosen = 2};
  picker.grids.push_back(
      {evil, "layer", "head", {{{evil, "0.10", 0.1, {"<p>a</p>"}}, {"b", "0.90", 0.9, {"<p>b</p>"}}}}});
  picker.grids.push_back({"", "layer", "head", {{{"c", evil, std::nan(""), {"<p>c</p>"}}}}});
  const std::string text = html(picker).text;
  EXPECT_EQ(testing::count(text, "type=\"radio\""), 3u);
  EXPECT_EQ(testing::count(text, "class=\"panel\""), 3u);
  EXPECT_EQ(testing::count(text, " checked"), 1u);
  EXPECT_THAT(text, HasSubstr("value=\"2\" aria-label=\"c: "));
  for (const char* rule : {"#heads-1:has(> .choices [value=\"0\"]:checked) > [data-choice=\"0\"]",
                           "#heads-1:has(> .choices [value=\"2\"]:checked) > [data-choice=\"2\"]"})
    EXPECT_THAT(text, HasSubstr(rule));
  EXPECT_THAT(text, Not(HasSubstr("<script>alert")));
  EXPECT_EQ(testing::count(text, "</style>"), 1u);
  EXPECT_EQ(testing::count(text, "on-strong"), 1u);            // the one of 0.9
  EXPECT_THAT(text, HasSubstr(heat_tones(24).front().light));  // not a number: the start of the ramp
}

}  // namespace
}  // namespace normlab
