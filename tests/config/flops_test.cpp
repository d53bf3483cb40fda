#include "normlab/config/flops.h"

#include <gtest/gtest.h>

namespace normlab {
namespace {

// 2 layers of width 8: 12 * 2 * 64 weights in the layers, 5 * 8 in the head.
Config small() {
  Config config;
  config.model = {.n_layers = 2, .n_heads = 2, .n_kv_heads = 2, .d_model = 8, .d_head = 4, .d_ff = 32, .seq_len = 4};
  config.train.batch_size = 3;
  config.train.accumulate = 2;
  return config;
}
constexpr double of_a_token = 6.0 * (12 * 2 * 64 + 5 * 8) + 3.0 * 2 * 2 * 4 * 8;

TEST(Flops, OfAStep) {
  EXPECT_EQ(matrix_entries(small().model, 5), 12 * 2 * 64 + 5 * 8);
  EXPECT_EQ(flops_of_step(small(), 5), of_a_token * 3 * 2 * 4);
}

// With 2 of 4 keys, positions see 1, 2, 2, 2 keys: in the formula's half steps 3 of 4, in one of the two layers.
TEST(Flops, OfAWindow) {
  Config config = small();
  config.model.window = 2;
  config.model.global_every = 2;
  EXPECT_EQ(flops_of_step(config, 5), (of_a_token - 3.0 * 2 * 1 * 8) * 3 * 2 * 4);
  config.model.window = 9;
  EXPECT_EQ(flops_of_step(config, 5), of_a_token * 3 * 2 * 4);
}

TEST(Flops, OfARunCountsEveryEvaluation) {
  Config config = small();
  config.train.max_steps = 25;
  const double steps = 25 * flops_of_step(config, 5), eval = 100 * of_a_token / 3.0;
  config.train.eval_every = 0;
  EXPECT_DOUBLE_EQ(flops_of_run(config, 5, 100), steps + eval);
  config.train.eval_every = 10;  // at 0, 10, 20, 25
  EXPECT_DOUBLE_EQ(flops_of_run(config, 5, 100), steps + 4 * eval);
  config.train.eval_every = 5;  // at 0, 5, ..., 25
  EXPECT_DOUBLE_EQ(flops_of_run(config, 5, 100), steps + 6 * eval);
  config.train.eval_windows = 10;  // of 4 tokens
  EXPECT_DOUBLE_EQ(flops_of_run(config, 5, 100), steps + 6 * 0.4 * eval);
}

}  // namespace
}  // namespace normlab
