// JSON of hostile files: bounds before anything is built.
#include "normlab/base/json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "normlab/base/error.h"

namespace normlab {
namespace {

using nlohmann::json;

std::string nested(int depth) {
  return std::string(static_cast<size_t>(depth), '[') + std::string(static_cast<size_t>(depth), ']');
}

TEST(Json, ParsesWhatIsWithinBounds) {
  EXPECT_EQ(parse_json(R"({"a": [1, 2.5, "x"]})"), json({{"a", {1, 2.5, "x"}}}));
  EXPECT_FALSE(parse_json(nested(100)).is_discarded());
}

TEST(Json, DiscardsWhatIsDeeperOrNotJson) {
  for (const std::string& text :
       {nested(101), nested(300'000), std::string(300'000, '['), std::string("{"), std::string()})
    EXPECT_TRUE(parse_json(text).is_discarded()) << text.substr(0, 10);
  EXPECT_TRUE(parse_json("{\"a\":" + nested(300'000) + "}").is_discarded());
}

TEST(Json, BracketsInTextDoNotCount) {
  const std::string brackets(1000, '[');
  EXPECT_EQ(parse_json("\"" + brackets + "\\\"" + brackets + "\""), json(brackets + "\"" + brackets));
  EXPECT_EQ(parse_json("[\"\\\\\", " + nested(98) + "]").size(), 2u);  // an escaped backslash ends no escape
}

TEST(Json, SizesArePositiveInts) {
  const json object = json::parse(R"({"good": 12, "most": 2147483647})");
  EXPECT_EQ(size_in(object, "good"), 12);
  EXPECT_EQ(size_in(object, "most"), 2147483647);
  for (const char* text : {"0", "-1", "2147483648", "9223372036854775808", "4294967300", "1.5", "\"4\"", "null", "[4]"})
    EXPECT_THROW(size_in({{"n", json::parse(text)}}, "n"), DataError) << text;
  EXPECT_THROW(size_in(object, "missing"), json::exception);
}

}  // namespace
}  // namespace normlab
