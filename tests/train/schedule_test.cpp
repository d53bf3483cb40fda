#include "train/schedule.h"

#include <gtest/gtest.h>

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

TEST(LearningRate, WarmUpLongerThanTheDecayIsNoDivisionByZero) {
  const OptimConfig optim{.lr = 1.0, .min_lr = 0.1, .warmup_steps = 10, .decay_steps = 10};
  EXPECT_DOUBLE_EQ(learning_rate(optim, 10), 0.1);
}

}  // namespace
}  // namespace normlab
