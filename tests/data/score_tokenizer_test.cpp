// Tokenisers of scores: cases in which sacreBLEU 2.6.0's rules show.
#include "data/score_tokenizer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"

namespace normlab {
namespace {

using testing::ElementsAre;

TEST(ScoreTokenizer, None) {
  EXPECT_THAT(split_words("  a\tb\u00a0c \u3000d."), ElementsAre("a", "b", "c", "d."));
  EXPECT_TRUE(split_words(" \t").empty());
  EXPECT_THAT(split_ascii_spaces(" a\tb\u00a0c "), ElementsAre("a", "b\u00a0c"));
}

TEST(ScoreTokenizer, Characters) { EXPECT_THAT(split_characters("a é\u00a0b"), ElementsAre("a", "é", "b")); }

TEST(ScoreTokenizer, V13a) {
  EXPECT_THAT(split_13a("Hello, world."), ElementsAre("Hello", ",", "world", "."));
  EXPECT_THAT(split_13a("1,000.5 a.b 5. .5"), ElementsAre("1,000.5", "a", ".", "b", "5", ".", ".", "5"));
  EXPECT_THAT(split_13a("don't 1-2 a-b (x)"), ElementsAre("don't", "1", "-", "2", "a-b", "(", "x", ")"));
  EXPECT_THAT(split_13a("&quot;a&quot; &amp;lt; <skipped>b"), ElementsAre("\"", "a", "\"", "<", "b"));
  EXPECT_THAT(split_13a("«é» 。"), ElementsAre("«é»", "。"));
}

TEST(ScoreTokenizer, International) {
  EXPECT_THAT(split_intl("«é», 1,000€!"), ElementsAre("«", "é", "»", ",", "1,000", "€", "!"));
  EXPECT_THAT(split_intl("in 1999. "), ElementsAre("in", "1999."));
  EXPECT_THAT(split_intl("1999. x"), ElementsAre("1999", ".", "x"));
  EXPECT_THAT(split_intl("a+b&quot;"), ElementsAre("a", "+", "b", "&", "quot", ";"));
}

TEST(ScoreTokenizer, Ter) { EXPECT_THAT(split_lower_words(" The ΌΣΟΣ  "), ElementsAre("the", "όσος")); }

TEST(ScoreTokenizer, ChrfWords) {
  EXPECT_THAT(split_chrf_words("(hi) \"a b. . é! «x»"),
              ElementsAre("(hi", ")", "\"", "a", "b", ".", ".", "é", "!", "«x»"));
}

TEST(ScoreTokenizer, IsFoundByName) {
  EXPECT_EQ(find_score_tokenizer("intl").split, &split_intl);
  EXPECT_THROW(find_score_tokenizer("zh"), UsageError);
}

}  // namespace
}  // namespace normlab
