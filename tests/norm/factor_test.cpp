#include "normlab/norm/factor.h"

#include <gtest/gtest.h>

namespace normlab {
namespace {

TEST(Factor, ReadsNumbersAndRules) {
  for (const char* text : {"sqrt(d_head)", "1/sqrt(d_head)", "1/sqrt(d_model)", "1/n_layers", "log2(L^2-L)", "matched",
                           "init", "10", "0.1", "-1"})
    EXPECT_EQ(Factor::parse(text)->text(), text);
  for (const char* text : {"", "banana", "inf", "nan"}) EXPECT_FALSE(Factor::parse(text)) << text;
}

TEST(Factor, FollowsItsRules) {
  const FactorSizes sizes{.d_head = 16, .d_model = 64, .init = 7.0, .n_layers = 8, .length = 256, .mean_square = 2.0};
  EXPECT_DOUBLE_EQ(value_of(*Factor::parse("sqrt(d_head)"), sizes), 4.0);
  EXPECT_DOUBLE_EQ(value_of(*Factor::parse("1/sqrt(d_head)"), sizes), 0.25);
  EXPECT_DOUBLE_EQ(value_of(*Factor::parse("1/sqrt(d_model)"), sizes), 0.125);
  EXPECT_DOUBLE_EQ(value_of(*Factor::parse("1/n_layers"), sizes), 0.125);
  EXPECT_NEAR(value_of(*Factor::parse("log2(L^2-L)"), sizes), 15.9944, 1e-4);
  EXPECT_NEAR(value_of(*Factor::parse("matched"), sizes), 7.9972, 1e-4);
  EXPECT_DOUBLE_EQ(value_of(*Factor::parse("init"), sizes), 7.0);
  EXPECT_DOUBLE_EQ(value_of(*Factor::parse("0.3"), sizes), 0.3);
}

}  // namespace
}  // namespace normlab
