// Detokenisation: what Moses' detokenizer.perl makes of such tokens.
#include "normlab/data/detokenizer.h"

#include <gtest/gtest.h>

namespace normlab {
namespace {

struct Case {
  const char *tokens, *text;
};

TEST(Detokenizer, English) {
  const Case cases[] = {
      {"Hello , world !", "Hello, world!"},
      {"I don &apos;t know what it &apos;s worth .", "I don't know what it's worth."},
      {"( a ) [ b ] costs $ 5 , or 10 % .", "(a) [b] costs $5, or 10%."},
      {"he said , &quot; yes &quot; and &quot; no &quot; .", "he said, \"yes\" and \"no\"."},
      {"the boys &apos; house", "the boys' house"},
      {"state @-@ of @-@ the @-@ art", "state-of-the-art"},
      {"a &lt; b &amp;lt; c &#124; d &#91; e &#93;", "a < b &lt; c | d [e]"},
      {"日本 語 and 한국", "日本語 and 한국"},
      {"  spaced   out  ", "spaced out"},
      {"", ""},
  };
  for (const Case& c : cases) EXPECT_EQ(detokenize(c.tokens), c.text);
}

TEST(Detokenizer, OtherLanguagesHaveNoContractions) {
  EXPECT_EQ(detokenize("don &apos;t ¿ que ?", "gl"), "don 't ¿que?");
}

}  // namespace
}  // namespace normlab
