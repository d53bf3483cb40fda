// Unicode properties: white space, classes old and new, small letters.
#include "normlab/data/unicode.h"

#include <gtest/gtest.h>

namespace normlab {
namespace {

TEST(Unicode, Spaces) {
  int spaces = 0;
  for (char32_t c = 0; c <= 0x10FFFF; ++c) spaces += is_space(c);
  EXPECT_EQ(spaces, 29);  // as many as Python's str.isspace knows
  for (const char32_t c : {U' ', U'\t', U'\r', U'\x1F', char32_t{0x85}, char32_t{0xA0}, char32_t{0x3000}})
    EXPECT_TRUE(is_space(c));
  for (const char32_t c : {U'a', U'\0', char32_t{0x200B}, char32_t{0xFEFF}}) EXPECT_FALSE(is_space(c));
}

TEST(Unicode, Classes) {
  for (const char32_t c : std::u32string(U"!-_(«¿…。、—")) EXPECT_EQ(char_class(c), CharClass::punctuation);
  for (const char32_t c : std::u32string(U"+=$€©^`|😀")) EXPECT_EQ(char_class(c), CharClass::symbol);
  for (const char32_t c : std::u32string(U"7½①Ⅷ٣५")) EXPECT_EQ(char_class(c), CharClass::number);
  for (const char32_t c : std::u32string(U"aÉßжשी語"))
    EXPECT_EQ(char_class(c), c == U'ी' ? CharClass::other : CharClass::letter);
  for (const char32_t c : {U' ', U'\n', char32_t{0x301}, char32_t{0x10FFFF}})
    EXPECT_EQ(char_class(c), CharClass::other);
  EXPECT_TRUE(is_currency(U'€'));
  EXPECT_FALSE(is_currency(U'+'));
}

TEST(Unicode, ClassesAfterUnicode15) {
  EXPECT_EQ(char_class(0x1B4E), CharClass::punctuation);
  EXPECT_EQ(char_class(0x1CC00), CharClass::symbol);
  EXPECT_EQ(char_class(0x1CCEF), CharClass::symbol);
  EXPECT_EQ(char_class(0x1CCF0), CharClass::number);
  EXPECT_EQ(char_class(0x1CCFD), CharClass::other);
}

TEST(Unicode, CodePointsAndBack) {
  EXPECT_EQ(to_code_points("a\xC3\xA9\xF0\x9F\x98\x80"), U"aé😀");
  EXPECT_EQ(to_utf8(U"aé😀"), "a\xC3\xA9\xF0\x9F\x98\x80");
  EXPECT_EQ(to_code_points("a\xFF"), U"a\uFFFD");
}

TEST(Unicode, SmallLetters) {
  EXPECT_EQ(to_lower("The ÉTÉ Straße ǅ ЖАР"), "the été straße ǆ жар");
  EXPECT_EQ(to_lower("İ"), "i\u0307");
}

TEST(Unicode, FinalSigma) {
  EXPECT_EQ(to_lower("ΌΣΟΣ"), "όσος");
  EXPECT_EQ(to_lower("Σ"), "σ");
  EXPECT_EQ(to_lower("ΑΣ. Α"), "ας. α");
  EXPECT_EQ(to_lower("ΑΣ.Α"), "ασ.α");
  EXPECT_EQ(to_lower("1Σ"), "1σ");
  EXPECT_EQ(to_lower("ⅠΣ"), "ⅰς");
}

}  // namespace
}  // namespace normlab
