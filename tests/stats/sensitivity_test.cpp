#include "normlab/stats/sensitivity.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "normlab/base/error.h"

namespace normlab {
namespace {

TEST(Sensitivity, IsTheMeanLossAboveTheBestRate) {
  EXPECT_DOUBLE_EQ(learning_rate_sensitivity(std::vector{2.0, 1.5, 1.0, 1.5}, 4.0), 0.5);
  EXPECT_DOUBLE_EQ(learning_rate_sensitivity(std::vector{2.0, 2.0, 2.0}, 4.0), 0.0);
}

TEST(Sensitivity, DivergedAndUselessRunsCountAsTheStart) {
  EXPECT_DOUBLE_EQ(clipped_loss(9.0, 4.0), 4.0);
  EXPECT_DOUBLE_EQ(clipped_loss(3.0, 4.0), 3.0);
  EXPECT_DOUBLE_EQ(learning_rate_sensitivity(std::vector<double>{2.0, 9.0, std::nan(""), INFINITY}, 4.0), 1.5);
  EXPECT_DOUBLE_EQ(learning_rate_sensitivity(std::vector{9.0, std::nan("")}, 4.0), 0.0);
}

TEST(Sensitivity, RefusesWhatItCannotJudge) {
  EXPECT_THROW(learning_rate_sensitivity(std::vector<double>{}, 4.0), Error);
  EXPECT_THROW(learning_rate_sensitivity(std::vector{1.0}, std::nan("")), Error);
}

}  // namespace
}  // namespace normlab
