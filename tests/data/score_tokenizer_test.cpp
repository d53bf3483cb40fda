// Tokenisers of scores: cases in which sacreBLEU 2.6.0's rules show.
#include "normlab/data/score_tokenizer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

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

TEST(ScoreTokenizer, Chinese) {
  EXPECT_THAT(split_zh(" 猫sat。1,5 "), ElementsAre("猫", "sat", "。", "1,5"));
  EXPECT_THAT(split_zh("a→b\u2000c ひら"), ElementsAre("a", "→", "b", "c", "ひら"));
  EXPECT_THAT(split_zh("𠀀x &quot;"), ElementsAre("𠀀x", "&", "quot", ";"));  // no range of the supplementary planes
}

TEST(ScoreTokenizer, Ter) {
  EXPECT_THAT(split_ter(" The ΌΣΟΣ  ", {}), ElementsAre("the", "όσος"));
  EXPECT_THAT(split_ter("The cat.", {.case_sensitive = true}), ElementsAre("The", "cat."));
  const std::string line = "cat's (1,000.5)&gt; 猫、ひら";
  EXPECT_THAT(split_ter(line, {.normalized = true}), ElementsAre("cat", "'s", "(", "1,000.5", ")", ">", "猫、ひら"));
  EXPECT_THAT(split_ter(line, {.normalized = true, .asian = true}),
              ElementsAre("cat", "'s", "(", "1,000.5", ")", ">", "猫", "、", "ひら"));
  EXPECT_THAT(split_ter(line, {.no_punct = true}), ElementsAre("cat's", "10005&gt", "猫、ひら"));
  EXPECT_THAT(split_ter(line, {.no_punct = true, .asian = true}), ElementsAre("cat's", "10005&gt", "猫ひら"));
}

TEST(ScoreTokenizer, ChrfWords) {
  EXPECT_THAT(split_chrf_words("(hi) \"a b. . é! «x»"),
              ElementsAre("(hi", ")", "\"", "a", "b", ".", ".", "é", "!", "«x»"));
}

TEST(ScoreTokenizer, AllCharacters) { EXPECT_THAT(split_all_characters(" a é \t"), ElementsAre(" ", "a", " ", "é")); }

TEST(ScoreTokenizer, Names) {
  EXPECT_EQ(score_tokenizer_names(), "13a, intl, char, none, zh, spm, flores101, flores200, spBLEU-1K");
}

}  // namespace
}  // namespace normlab
