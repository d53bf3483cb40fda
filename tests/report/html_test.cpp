// Tests of safe HTML.
#include "normlab/report/html.h"

#include <gtest/gtest.h>

namespace normlab {
namespace {

TEST(Html, TextIsEscaped) {
  EXPECT_EQ(paragraph("a<b").text, "<p>a&lt;b</p>\n");
  EXPECT_EQ(code_block("</code><script>").text, "<pre tabindex=\"0\"><code>&lt;/code&gt;&lt;script&gt;</code></pre>\n");
  EXPECT_EQ(collapsed("<x>", paragraph("y")).text, "<details><summary>&lt;x&gt;</summary>\n<p>y</p>\n</details>\n");
}

TEST(Slug, LettersDigitsAndDashes) {
  EXPECT_EQ(slug("Which p is best?"), "which-p-is-best");
  EXPECT_EQ(slug("  a--b\"onclick=  "), "a-b-onclick");
  EXPECT_EQ(slug("数"), "x");
  EXPECT_EQ(slug(""), "x");
}

}  // namespace
}  // namespace normlab
