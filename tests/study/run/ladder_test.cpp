#include "normlab/study/run/ladder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "normlab/base/error.h"
#include "normlab/study/run/cost.h"
#include "study/sample_study.h"

namespace normlab {
namespace {

Plan ladder_plan(const std::string& ladder, const std::string& extra = "") {
  const std::string text = "[ladder]\n" + ladder + extra;
  return make_plan(read_study(parse_toml(text, "study.toml")), "study");
}

const std::string usual = "depth = [2, 4]\ntokens_per_param = [10, 20]\nwidth_per_layer = 16\nhead_width = 16\n";
const std::string trained = "[model]\nseq_len = 32\n[train]\nbatch_size = 8\n[optim]\nlr = 1e-2\nmin_lr = 1e-3\n";

TEST(Ladder, RulesDeriveEverySize) {
  const Plan plan = ladder_plan(usual, trained);
  ASSERT_EQ(plan.variants.size(), 4u);
  EXPECT_EQ(plan.variants[2].label, "depth = 4, tokens_per_param = 10");
  const Config &first = plan.trials[0].config, &last = plan.trials[3].config;
  EXPECT_EQ(first.model.n_layers, 2);
  EXPECT_EQ(first.model.d_model, 32);
  EXPECT_EQ(first.model.n_heads, 2);
  EXPECT_EQ(first.train.batch_size, 8);  // the first rung is as the file says
  EXPECT_EQ(first.optim.lr, 1e-2);
  // 12 L d^2 = 24,576 weights, 10 tokens each, 256 a step
  EXPECT_EQ(first.train.max_steps, 960);
  EXPECT_EQ(last.model.d_model, 64);
  // 8 times the weights, 16 times the tokens: compute 128
  EXPECT_EQ(last.train.batch_size, std::lround(8 * std::pow(128, 0.3271)));
  EXPECT_NEAR(last.optim.lr, 1e-2 * std::pow(128, -0.125), 1e-6);
  EXPECT_NEAR(last.optim.min_lr, 1e-3 * std::pow(128, -0.125), 1e-7);
  const double tokens = 20.0 * 8 * 24576, per_step = last.train.batch_size * 32.0;
  EXPECT_EQ(last.train.max_steps, static_cast<int64_t>(std::ceil(tokens / per_step)));
}

TEST(Ladder, ExponentsAndEvaluationsAreRules) {
  const Plan plan = ladder_plan(usual + "batch_exponent = 0\nlr_exponent = 0\nevaluations = 10\n", trained);
  EXPECT_EQ(plan.trials[3].config.train.batch_size, 8);
  EXPECT_EQ(plan.trials[3].config.optim.lr, 1e-2);
  EXPECT_EQ(plan.trials[0].config.train.eval_every, 96);
}

TEST(Ladder, HorizonsInTokensAreTheSameForAllSizes) {
  const Plan plan = ladder_plan(
      "depth = [2, 4]\ntokens = [100000, 1000000]\nwidth_per_layer = 16\nhead_width = 16\nbatch_exponent = 0\n",
      trained);
  ASSERT_EQ(plan.variants.size(), 4u);
  EXPECT_EQ(plan.variants[1].label, "depth = 2, tokens = 1000000");
  for (const size_t i : {0, 2}) EXPECT_EQ(plan.trials[i].config.train.max_steps, 391);  // 100,000 / 256, rounded up
  for (const size_t i : {1, 3}) EXPECT_EQ(plan.trials[i].config.train.max_steps, 3907);
  // 8 times the weights, 10 times the tokens
  EXPECT_NEAR(plan.trials[3].config.optim.lr, 1e-2 * std::pow(80, -0.125), 1e-6);
}

TEST(Ladder, GridsOfRatesAndBatchesAreCrossed) {
  const Plan plan = ladder_plan("depth = 2\nwidth_per_layer = 16\nhead_width = 16\n",
                                "[optim]\nlr = [1e-3, 1e-2]\n[train]\nbatch_size = [2, 4, 8]\n");
  ASSERT_EQ(plan.variants.size(), 6u);
  EXPECT_EQ(plan.trials[5].config.train.batch_size, 8);
  EXPECT_EQ(plan.trials[5].config.optim.lr, 1e-2);
  EXPECT_EQ(plan.trials[0].config.train.max_steps, 4 * plan.trials[2].config.train.max_steps);
}

TEST(Ladder, TheFileReadsBack) {
  const Plan plan = ladder_plan(usual, trained);
  const StudySpec again = read_study(parse_toml(to_toml(plan.spec), "study.toml"));
  EXPECT_EQ(to_toml(again), to_toml(plan.spec));
  EXPECT_EQ(make_plan(again, "study").trials[3].config.train.max_steps, plan.trials[3].config.train.max_steps);
}

TEST(Ladder, Refusals) {
  const auto refused = [](const std::string& ladder, const std::string& extra, const std::string& text) {
    try {
      ladder_plan(ladder, extra);
      ADD_FAILURE() << "not refused: " << text;
    } catch (const UsageError& error) {
      EXPECT_THAT(error.what(), testing::HasSubstr(text));
    }
  };
  refused("width_per_layer = 16\n", "", "ladder.depth");
  refused("depth = [2, 3]\nwidth_per_layer = [16, 32]\n", "", "one rule for all sizes");
  refused("depth = [2, 3]\nhead_width = 48\n", "", "divisor of 2 x 64");
  refused("depth = [2, 3]\n", "[train]\nmax_steps = 5\n", "train.max_steps is derived");
  refused("depth = [2, 3]\ndepths = 3\n", "", "depth");
  refused("depth = [0, 3]\n", "", "ladder.depth");
  refused("depth = [2, 3]\ntokens = 1000\ntokens_per_param = 5\n", "", "Leave out one of them");
}

TEST(Cost, SizesAreExact) {
  const Plan plan = ladder_plan(usual, trained);
  const Table table = size_table(plan, 65);
  const auto& row = table.rows.front();
  // Embedding 65 x 32, positions 32 x 32; 12 x 2 x 32^2 weights and five LayerNorm gains.
  EXPECT_EQ(row[4].number, 65 * 32 + 32 * 32 + 24576 + 5 * 32);
  EXPECT_EQ(row[5].number, 24576 + 5 * 32);
  EXPECT_EQ(row[6].number, 245760);
  const double per_token = 6.0 * (24576 + 65 * 32) + 3 * 2 * 2 * 32 * 32;
  EXPECT_EQ(row[10].number, 245760 * per_token);
  EXPECT_EQ(training_flops(plan, 65).front(), 245760 * per_token);
}

TEST(Cost, BusiestSlotTakesTheLongestFirst) {
  EXPECT_EQ(busiest_slot({3, 1, 2, 2}, 1), 8);
  EXPECT_EQ(busiest_slot({3, 1, 2, 2}, 2), 4);
  EXPECT_EQ(busiest_slot({3, 1, 2, 2}, 100), 3);
  EXPECT_EQ(busiest_slot({}, 2), 0);
}

}  // namespace
}  // namespace normlab
