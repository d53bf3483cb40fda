#include "normlab/base/condition.h"

#include <gtest/gtest.h>

#include <map>

namespace normlab {
namespace {

Condition::ValueOf values(std::map<std::string, std::string> map) {
  return [map](const std::string& key) { return map.at(key); };
}

TEST(Condition, TermsAreJoinedWithAndThenWithOr) {
  const Condition condition("a.x=1|2 and a.y!=none or a.n>0");
  EXPECT_TRUE(condition.holds(values({{"a.x", "2"}, {"a.y", "some"}, {"a.n", "0"}})));
  EXPECT_FALSE(condition.holds(values({{"a.x", "3"}, {"a.y", "some"}, {"a.n", "0"}})));
  EXPECT_FALSE(condition.holds(values({{"a.x", "1"}, {"a.y", "none"}, {"a.n", "0"}})));
  EXPECT_TRUE(condition.holds(values({{"a.x", "1"}, {"a.y", "none"}, {"a.n", "0.5"}})));
}

TEST(Condition, AnEmptyValueIsATextThatIsNotSet) {
  EXPECT_TRUE(Condition("a.text=").holds(values({{"a.text", ""}})));
  EXPECT_TRUE(Condition("a.text!=").holds(values({{"a.text", "de"}})));
  EXPECT_FALSE(Condition("a.text!=").holds(values({{"a.text", ""}})));
}

TEST(Condition, SaysWhatItNeedsAndWhatIsMissing) {
  const Condition condition("a.x=1|2 and a.y!=none or a.n>0");
  EXPECT_EQ(condition.words(), "a.x is 1 or 2 and a.y is not none, or a.n is above 0");
  EXPECT_EQ(condition.state(values({{"a.x", "2"}, {"a.y", "none"}, {"a.n", "0"}})), "a.y is none, a.n is 0");
  EXPECT_EQ(Condition("a.text!=").words(), "a.text is set");
  EXPECT_EQ(Condition("a.text=").words(), "a.text is empty");
}

}  // namespace
}  // namespace normlab
