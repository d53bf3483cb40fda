// Text: numbers read back exactly, whatever their size.
#include "normlab/base/text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "normlab/base/random.h"

namespace normlab {
namespace {

using testing::ElementsAre;

constexpr double inf = std::numeric_limits<double>::infinity();
constexpr double nan = std::numeric_limits<double>::quiet_NaN();

TEST(Text, StrJoinsPartsOfEveryKind) {
  const std::string word = "word";
  const char* literal = "pointer";
  EXPECT_EQ(concat("step ", 3, ": ", 1.5, ' ', true, false, ' ', word, ' ', literal),
            "step 3: 1.5 truefalse word pointer");
  EXPECT_EQ(concat(std::numeric_limits<int64_t>::min(), ' ', std::numeric_limits<uint64_t>::max()),
            "-9223372036854775808 18446744073709551615");
}

TEST(Text, NumberIsReadable) {
  EXPECT_EQ(format_number(0), "0");
  EXPECT_EQ(format_number(0.1), "0.1");
  EXPECT_EQ(format_number(-2.5), "-2.5");
  EXPECT_EQ(format_number(100000), "100000");
  EXPECT_EQ(format_number(0.0001), "0.0001");
  EXPECT_EQ(format_number(1e-5), "1e-05");
  EXPECT_EQ(format_number(1e30), "1e+30");
  EXPECT_EQ(format_number(inf), "inf");
  EXPECT_EQ(format_number(-inf), "-inf");
  EXPECT_EQ(format_number(-nan), "nan");
}

TEST(Text, NumberReadsBackExactly) {
  const uint64_t key = stream_key(1);
  for (uint64_t i = 0; i < 20000; ++i) {
    const uint64_t bits = draw_bits(key, i);
    double value;
    std::memcpy(&value, &bits, sizeof value);
    if (!std::isfinite(value)) continue;
    EXPECT_EQ(parse_number(format_number(value)), value);
    const double moderate = (draw_uniform(key, i) - 0.5) * std::pow(10.0, static_cast<double>(i % 40) - 20);
    EXPECT_EQ(parse_number(format_number(moderate)), moderate);
  }
  EXPECT_EQ(parse_number(format_number(5e-324)), 5e-324);
  EXPECT_EQ(parse_number(format_number(std::numeric_limits<double>::max())), std::numeric_limits<double>::max());
}

TEST(Text, FixedKeepsDecimals) {
  EXPECT_EQ(fixed(1.88, 4), "1.8800");
  EXPECT_EQ(fixed(1e300, 2).size(), 304u);
  EXPECT_EQ(fixed(0.5, 0), "0");
  EXPECT_EQ(fixed(-0.0001, 2), "0.00");
  EXPECT_EQ(fixed(-0.01, 2), "-0.01");
  EXPECT_EQ(fixed(nan, 2), "nan");
}

TEST(Text, SignificantKeepsDigits) {
  EXPECT_EQ(significant(1.88, 4), "1.880");
  EXPECT_EQ(significant(0.012341, 4), "0.01234");
  EXPECT_EQ(significant(1.2e-7, 2), "1.2e-07");
  EXPECT_EQ(significant(9.9996, 4), "10.00");
  EXPECT_EQ(significant(12345.6, 4), "12346");
  EXPECT_EQ(significant(1.5e9, 4), "1.500e+09");
  EXPECT_EQ(significant(0, 4), "0.000");
  EXPECT_EQ(significant(-inf, 4), "-inf");
}

TEST(Text, SiHasThreeDigitsAndAPrefix) {
  EXPECT_EQ(si(0), "0");
  EXPECT_EQ(si(0.5), "0.500");
  EXPECT_EQ(si(999.4), "999");
  EXPECT_EQ(si(999.6), "1.00k");
  EXPECT_EQ(si(12345), "12.3k");
  EXPECT_EQ(si(-4.56e6), "-4.56M");
  EXPECT_EQ(si(999.9e9), "1.00T");
  EXPECT_EQ(si(1e21), "1.00e+21");
  EXPECT_EQ(si(inf), "inf");
}

TEST(Text, ClockTimeIsHoursMinutesSeconds) {
  EXPECT_EQ(clock_time(125), "0:02:05");
  EXPECT_EQ(clock_time(59.6), "0:01:00");
  EXPECT_EQ(clock_time(86399), "23:59:59");
  EXPECT_EQ(clock_time(86400), "1 d 0 h");
  EXPECT_EQ(clock_time(360000), "4 d 4 h");
  EXPECT_EQ(clock_time(-1), "-:--:--");
  EXPECT_EQ(clock_time(nan), "-:--:--");
  EXPECT_EQ(clock_time(inf), "-:--:--");
}

TEST(Text, ParseNumberTakesTheWholeText) {
  EXPECT_EQ(parse_number("0.5"), 0.5);
  EXPECT_EQ(parse_number("-3e-4"), -3e-4);
  EXPECT_EQ(parse_number("inf"), inf);
  EXPECT_EQ(parse_number("-inf"), -inf);
  for (const char* bad : {"", " 1", "1 ", "1x", "0x10", "1,5", "nan", "-nan", "1e999", "e5", "--1", "one"}) {
    EXPECT_EQ(parse_number(bad), std::nullopt) << bad;
  }
}

TEST(Text, ParseIntegerTakesTheWholeText) {
  EXPECT_EQ(parse_integer("-42"), -42);
  for (const char* bad : {"", "1.0", "1e3", " 1", "9223372036854775808", "0x1"}) {
    EXPECT_EQ(parse_integer(bad), std::nullopt) << bad;
  }
}

TEST(Text, TrimSplitJoinReplace) {
  EXPECT_EQ(trim(" \t a b \r\n"), "a b");
  EXPECT_EQ(trim(" \n"), "");
  EXPECT_THAT(split("a,,b,", ','), ElementsAre("a", "", "b", ""));
  EXPECT_THAT(split("", ','), ElementsAre(""));
  EXPECT_EQ(join(split("a,b,c", ','), ", "), "a, b, c");
  EXPECT_EQ(join({}, ", "), "");
  EXPECT_EQ(replace_all("aXbXX", "X", "XY"), "aXYbXYXY");
  EXPECT_EQ(replace_all("abc", "", "x"), "abc");
}

TEST(Text, NearestFindsTypingErrorsOnly) {
  const std::vector<std::string> names = {"lp", "qknorm", "warmup_steps", "learning_rate", "none"};
  EXPECT_EQ(nearest("learing_rate", names), "learning_rate");
  EXPECT_EQ(nearest("qknrom", names), "qknorm");
  EXPECT_EQ(nearest("warmup", names), std::nullopt);
  EXPECT_EQ(nearest("pl", names), "lp");
  EXPECT_EQ(nearest("xy", names), std::nullopt);
  EXPECT_EQ(nearest("none", names), "none");
  EXPECT_EQ(nearest("anything", {}), std::nullopt);
  EXPECT_EQ(nearest("fold_c", std::vector<std::string>{"fold_a", "fold_b"}), "fold_a");
}

}  // namespace
}  // namespace normlab
