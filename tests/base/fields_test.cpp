#include "normlab/base/fields.h"

#include <gmock/gmock.h>

#include "normlab/base/error.h"

namespace normlab {

enum class Colour { red, green };
template <>
std::vector<std::string> enum_names<Colour>() {
  return {"red", "green"};
}

namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;

struct Sample {
  int whole = 3;
  double real = 0.5;
  bool flag = false;
  std::string text = "a \"b\"";
  Colour colour = Colour::red;
};

FieldList list_of(Sample& sample) {
  FieldList list;
  list.section("part");
  list.integer("whole", sample.whole, {.min = 1, .max = 9}, "a count");
  list.real("real", sample.real, {.min = 0.0, .open_min = true}, "a number");
  list.flag("flag", sample.flag, "a switch");
  list.text("text", sample.text, "words");
  list.choice("colour", sample.colour, "a choice");
  return list;
}

TEST(Fields, TomlReadsBackToTheSameValues) {
  Sample sample{.whole = 7, .real = 0.1, .flag = true, .text = "x\\ \"y\"\n\t\x7f", .colour = Colour::green}, other;
  const std::string toml = to_toml(list_of(sample));
  const FieldList list = list_of(other);
  for (const Setting& setting : parse_toml(toml, "test")) apply(list, setting);
  EXPECT_EQ(to_toml(list_of(other)), toml);
  EXPECT_EQ(other.text, sample.text);
  EXPECT_EQ(other.colour, Colour::green);
}

TEST(Fields, UnknownKeyNamesTheNearest) {
  Sample sample;
  const FieldList list = list_of(sample);
  EXPECT_THAT([&] { apply(list, parse_setting("part.hwole=3")); },
              ThrowsMessage<UsageError>(HasSubstr("Did you mean 'part.whole'?")));
  EXPECT_THAT([&] { apply(list, parse_setting("nothing.like.it=3")); },
              ThrowsMessage<UsageError>(HasSubstr("normlab config keys")));
}

TEST(Fields, ValuesOutOfRangeOrOfAnotherTypeAreRefused) {
  Sample sample;
  const FieldList list = list_of(sample);
  for (const char* bad :
       {"part.whole=0", "part.whole=10", "part.whole=3.5", "part.whole=", "part.real=0", "part.real=nan",
        "part.real=inf", "part.real=0,5", "part.flag=yes", "part.colour=blue", "part.whole=99999999999"})
    EXPECT_THAT([&] { apply(list, parse_setting(bad)); }, ThrowsMessage<UsageError>(HasSubstr("expected"))) << bad;
  EXPECT_EQ(sample.whole, 3);
}

TEST(Fields, InfinityIsAValueOnlyWhereTheRangeSaysSo) {
  double p = 2.0;
  FieldList list;
  list.section("norm");
  list.real("p", p, {.min = 0.0, .open_min = true, .infinite = true}, "p");
  apply(list, parse_setting("norm.p=inf"));
  EXPECT_EQ(p, std::numeric_limits<double>::infinity());
  EXPECT_THAT([&] { apply(list, parse_setting("norm.p=-inf")); },
              ThrowsMessage<UsageError>(HasSubstr("a number above 0, inf included")));
}

TEST(Fields, SettingsNeedKeyAndValue) {
  EXPECT_THROW(parse_setting("part.whole"), UsageError);
  EXPECT_THROW(parse_setting("=3"), UsageError);
  const Setting list = parse_setting("norm.p=[1, 1.5,\"x\"]");
  EXPECT_TRUE(list.is_list);
  EXPECT_EQ(list.values, (std::vector<std::string>{"1", "1.5", "x"}));
}

TEST(Fields, ListsAreForStudies) {
  Sample sample;
  EXPECT_THAT([&] { apply(list_of(sample), parse_setting("part.whole=[1, 2]")); },
              ThrowsMessage<UsageError>(HasSubstr("studies")));
}

TEST(Fields, ArraysOfTablesAreNumbered) {
  const auto settings = parse_toml("[[variant]]\nlabel = \"a\"\n[[variant]]\nnorm.p = 3\n", "x.toml");
  ASSERT_EQ(settings.size(), 2u);
  EXPECT_EQ(settings[0].key, "variant.0.label");
  EXPECT_EQ(settings[1].key, "variant.1.norm.p");
  EXPECT_EQ(settings[1].where, "x.toml:4");
  EXPECT_THAT([] { parse_toml("[[variant]]\n", "x.toml"); }, ThrowsMessage<UsageError>(HasSubstr("x.toml:1")));
}

TEST(Fields, TomlErrorsNameTheLine) {
  EXPECT_THAT([] { parse_toml("[part]\nwhole = = 3\n", "x.toml"); }, ThrowsMessage<UsageError>(HasSubstr("x.toml:2")));
  EXPECT_THROW(parse_toml("[part]\nwhole = 1979-05-27\n", "x.toml"), UsageError);
  EXPECT_EQ(parse_toml("[part]\n\nwhole = 3\n", "x.toml").front().where, "x.toml:3");
}

}  // namespace
}  // namespace normlab
