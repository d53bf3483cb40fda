#include "normlab/train/schedule.h"

#include <gtest/gtest.h>

#include <cmath>

namespace normlab {
namespace {

// nanoGPT's get_lr with learning_rate 1e-3, min_lr 1e-4, warmup_iters 100, lr_decay_iters 2000.
TEST(LearningRate, CosineIsNanogpts) {
  const OptimConfig optim{.lr = 1e-3, .min_lr = 1e-4, .warmup_steps = 100, .decay_steps = 2000};
  EXPECT_DOUBLE_EQ(learning_rate(optim, 0), 1e-3 / 101);
  EXPECT_DOUBLE_EQ(learning_rate(optim, 99), 1e-3 * 100 / 101);
  EXPECT_DOUBLE_EQ(learning_rate(optim, 100), 1e-3);
  EXPECT_NEAR(learning_rate(optim, 1050), 5.5e-4, 1e-15);
  EXPECT_DOUBLE_EQ(learning_rate(optim, 2000), 1e-4);
  EXPECT_DOUBLE_EQ(learning_rate(optim, 9999), 1e-4);
}

TEST(LearningRate, LinearAndConstant) {
  OptimConfig optim{.lr = 1.0, .min_lr = 0.0, .schedule = ScheduleKind::linear, .warmup_steps = 0, .decay_steps = 10};
  EXPECT_DOUBLE_EQ(learning_rate(optim, 0), 1.0);
  EXPECT_DOUBLE_EQ(learning_rate(optim, 3), 0.7);
  EXPECT_DOUBLE_EQ(learning_rate(optim, 10), 0.0);
  optim.schedule = ScheduleKind::constant;
  EXPECT_DOUBLE_EQ(learning_rate(optim, 1000), 1.0);
}

TEST(LearningRate, InverseSquareRoot) {
  const OptimConfig optim{.lr = 1.0, .min_lr = 0.1, .schedule = ScheduleKind::inverse_sqrt, .warmup_steps = 99};
  EXPECT_DOUBLE_EQ(learning_rate(optim, 49), 0.5);
  EXPECT_DOUBLE_EQ(learning_rate(optim, 99), 1.0);
  EXPECT_DOUBLE_EQ(learning_rate(optim, 399), 0.5);
  EXPECT_DOUBLE_EQ(learning_rate(optim, 1000000), 0.1);
}

TEST(LearningRate, TheAuthorsWarmUpOfQknorm) {
  const OptimConfig optim{.lr = 1.0 / std::sqrt(512.0 * 8000), .schedule = ScheduleKind::plateau, .warmup_steps = 7999};
  EXPECT_NEAR(learning_rate(optim, 99), 100 * std::pow(8000, -1.5) / std::sqrt(512.0), 1e-12);  // their step 100
  EXPECT_NEAR(learning_rate(optim, 20000), 4.94e-4, 1e-6);
}

TEST(Plateau, IsAScoreBelowEachOfTheLastFew) {
  EXPECT_FALSE(on_plateau({3, 2, 1}, 3));  // too few
  EXPECT_TRUE(on_plateau({5, 6, 7, 4.9}, 3));
  EXPECT_FALSE(on_plateau({5, 6, 7, 5}, 3));
  EXPECT_TRUE(on_plateau({1, 5, 6, 7, 4.9}, 3));  // what came before does not count
  EXPECT_TRUE(on_plateau({2, 1}, 1));
}

TEST(LearningRate, WarmUpLongerThanTheDecayIsNoDivisionByZero) {
  const OptimConfig optim{.lr = 1.0, .min_lr = 0.1, .warmup_steps = 10, .decay_steps = 10};
  EXPECT_DOUBLE_EQ(learning_rate(optim, 10), 0.1);
}

}  // namespace
}  // namespace normlab
