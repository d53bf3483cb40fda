// Text for people: durations and wrapped lines.
#include "normlab/base/prose.h"

#include <gtest/gtest.h>

#include <limits>

namespace normlab {
namespace {

TEST(Prose, SpokenTime) {
  EXPECT_EQ(spoken_time(0.2), "0 s");
  EXPECT_EQ(spoken_time(59.4), "59 s");
  EXPECT_EQ(spoken_time(59.6), "1 min");
  EXPECT_EQ(spoken_time(3569), "59 min");
  EXPECT_EQ(spoken_time(3590), "1 h");
  EXPECT_EQ(spoken_time(12000), "3 h 20 min");
  EXPECT_EQ(spoken_time(273600), "3 d 4 h");
  EXPECT_EQ(spoken_time(std::numeric_limits<double>::quiet_NaN()), "-:--:--");
}

TEST(Prose, WrapBreaksBetweenWords) {
  using Lines = std::vector<std::string>;
  EXPECT_EQ(wrap("one two three", 7), (Lines{"one two", "three"}));
  EXPECT_EQ(wrap("one two three", 6), (Lines{"one", "two", "three"}));
  EXPECT_EQ(wrap("incomprehensible, or not", 8), (Lines{"incomprehensible,", "or not"}));
  EXPECT_EQ(wrap("\u00e9\u00e9 \u00e9\u00e9", 5), (Lines{"\u00e9\u00e9 \u00e9\u00e9"}));
  EXPECT_EQ(wrap("a,  b", 5), (Lines{"a,  b"}));
  EXPECT_EQ(wrap("", 5), (Lines{""}));
}

}  // namespace
}  // namespace normlab
