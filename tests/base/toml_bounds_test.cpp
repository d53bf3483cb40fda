// Bounds on TOML: keys of many parts, wherever they stand.
#include "normlab/base/toml_bounds.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "normlab/base/error.h"
#include "normlab/base/fields.h"

namespace normlab {
namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;

std::string key_of(size_t parts, const std::string& part = "a", const std::string& dot = ".") {
  std::string key = part;
  for (size_t i = 1; i < parts; ++i) key += dot + part;
  return key;
}

void expect_too_deep(const std::string& text) {
  EXPECT_THAT([&] { parse_toml(text, "x.toml"); }, ThrowsMessage<UsageError>(HasSubstr("more than 50 parts")))
      << text.substr(0, 40);
}

TEST(TomlBounds, KeysOfManyPartsAreRefused) {
  for (const size_t parts : {51ul, 50'000ul}) {
    expect_too_deep(key_of(parts) + " = 1");
    expect_too_deep("[" + key_of(parts) + "]\nb = 1");
    expect_too_deep("[[" + key_of(parts) + "]]\nb = 1");
    expect_too_deep("x = {" + key_of(parts) + " = 1}");
    expect_too_deep(key_of(parts, "\"a.b\"", " . ") + " = 1");
  }
}

TEST(TomlBounds, TheLineIsNamed) {
  EXPECT_THAT([] { parse_toml("b = '''\n\n'''\n# c\n" + key_of(51) + " = 1", "x.toml"); },
              ThrowsMessage<UsageError>(HasSubstr("[x.toml:5]")));
}

TEST(TomlBounds, DotsElsewhereDoNotCount) {
  EXPECT_EQ(parse_toml(key_of(50) + " = 1", "x").size(), 1u);
  const std::string dots(1000, '.');
  for (const std::string& text : {"a = '" + dots + "'", "a = \"\\\"" + dots + "\"", "a = '''\n'" + dots + "'''",
                                  "# " + dots + "\na = 1", "a = \"\"\"\n\"" + dots + "\"\"\" # " + dots})
    EXPECT_EQ(parse_toml(text, "x").size(), 1u) << text.substr(0, 10);
  std::string numbers = "a = [0.5";
  for (int i = 0; i < 1000; ++i) numbers += ", 1.5";
  EXPECT_EQ(parse_toml(numbers + "]", "x").at(0).values.size(), 1001u);
}

TEST(TomlBounds, NonAsciiCharactersStandInQuotesOrComments) {
  for (const std::string text : {"\u00e9 = 1", "a = 1 \u3001", "a = 1\n\u00a0b = 2", "a = 'x'\u00e9", "[\u00e9]"})
    EXPECT_THAT([&] { parse_toml(text, "x.toml"); }, ThrowsMessage<UsageError>(HasSubstr("not in quotes"))) << text;
  for (const std::string text :
       {"a = \"\\\u00e9\"", "a = \"\"\"\\\n  \u00e9\"\"\"", "a = \"\"\"\\\\ \\ \r\n\t\u3001\"\"\""})
    EXPECT_THAT([&] { parse_toml(text, "x.toml"); }, ThrowsMessage<UsageError>(HasSubstr("a backslash"))) << text;
  for (const std::string text :
       {"\uFEFFa = '\u00e9'", "'\u00e9' = 1", "a = 1 # \u3001", "a = \"\\\\\u00e9\"", "a = '\\\u00e9'"})
    EXPECT_EQ(parse_toml(text, "x").size(), 1u) << text;
}

TEST(TomlBounds, DeepValuesAreAnError) {
  EXPECT_THROW(parse_toml("a = " + std::string(100'000, '['), "x"), UsageError);
  EXPECT_THROW(parse_toml("a = " + std::string(1000, '{') + "", "x"), UsageError);
}

TEST(TomlBounds, ATextOfManyMegabytesIsNoConfiguration) {
  EXPECT_THAT([] { require_toml_within_bounds(std::string((64 << 20) + 1, '\n'), "x.toml"); },
              ThrowsMessage<UsageError>(HasSubstr("too large")));
}

}  // namespace
}  // namespace normlab
