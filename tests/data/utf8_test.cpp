// UTF-8: every code point survives the way there and back; every kind of ill-formed sequence is found.
#include "normlab/data/utf8.h"

#include <gtest/gtest.h>

namespace normlab {
namespace {

using namespace std::string_view_literals;

TEST(Utf8, RoundTripsEveryCodePoint) {
  for (char32_t value = 0; value <= largest_code_point; ++value) {
    if (value >= 0xD800 && value <= 0xDFFF) continue;
    std::string text;
    append_utf8(text, value);
    const Utf8Item item = decode_utf8(text, 0);
    ASSERT_EQ(item.state, Utf8State::valid) << static_cast<uint32_t>(value);
    ASSERT_EQ(item.value, value);
    ASSERT_EQ(static_cast<size_t>(item.length), text.size());
    for (size_t cut = 1; cut < text.size(); ++cut) {
      const Utf8Item part = decode_utf8(std::string_view(text).substr(0, cut), 0);
      ASSERT_EQ(part.state, Utf8State::truncated);
      ASSERT_EQ(static_cast<size_t>(part.length), cut);
    }
  }
}

TEST(Utf8, EncodesKnownSequences) {
  std::string text;
  for (const char32_t value : {0x24U, 0xA3U, 0x20ACU, 0x10348U}) append_utf8(text, value);
  EXPECT_EQ(text, "\x24\xC2\xA3\xE2\x82\xAC\xF0\x90\x8D\x88");
}

TEST(Utf8, NamesTheFirstInvalidOffset) {
  struct Case {
    std::string_view text;
    size_t offset;
  };
  const Case cases[] = {
      {"ab\x80"sv, 2},            // a continuation byte alone
      {"\xC0\xAF"sv, 0},          // overlong
      {"a\xE0\x80\xAF"sv, 1},     // overlong
      {"\xF0\x80\x80\x80"sv, 0},  // overlong
      {"\xED\xA0\x80"sv, 0},      // a surrogate
      {"\xF4\x90\x80\x80"sv, 0},  // beyond U+10FFFF
      {"\xF5\x80\x80\x80"sv, 0},  // no such lead byte
      {"\xC3\xA9\xFF"sv, 2},      // no such byte
      {"\xE2\x82"sv, 0},          // cut off
      {"x\xE2\x82y"sv, 1},        // broken off
      {"\0\xF0\x9F\x98"sv, 1},    // cut off after a NUL
  };
  for (const Case& c : cases) EXPECT_EQ(first_invalid_utf8(c.text), c.offset) << c.text;
  for (const std::string_view text : {""sv, "a\0b"sv, "\xEF\xBB\xBF"sv, "\xF4\x8F\xBF\xBF"sv, "\xED\x9F\xBF"sv})
    EXPECT_EQ(first_invalid_utf8(text), std::nullopt);
}

TEST(Utf8, VisitsMaximalPartsAsReplacement) {
  // The example of the Unicode standard, table 3-8.
  std::u32string seen;
  std::vector<size_t> offsets;
  for_each_code_point("\x61\xF1\x80\x80\xE1\x80\xC2\x62\x80\x63\x80\xBF\x64"sv, [&](char32_t value, size_t offset) {
    seen += value;
    offsets.push_back(offset);
  });
  EXPECT_EQ(seen, U"a\uFFFD\uFFFD\uFFFDb\uFFFDc\uFFFD\uFFFDd");
  EXPECT_EQ(offsets, (std::vector<size_t>{0, 1, 4, 6, 7, 8, 9, 10, 11, 12}));
}

TEST(Utf8, DescribesCharacters) {
  EXPECT_EQ(describe_code_point(U'x'), "'x' (U+0078)");
  EXPECT_EQ(describe_code_point(0xE9), "'\xC3\xA9' (U+00E9)");
  EXPECT_EQ(describe_code_point(0x1F600), "'\xF0\x9F\x98\x80' (U+1F600)");
  EXPECT_EQ(describe_code_point(U'\n'), "U+000A");
  EXPECT_EQ(describe_code_point(0x10FFFF), "'\xF4\x8F\xBF\xBF' (U+10FFFF)");
}

}  // namespace
}  // namespace normlab
