#include "normlab/study/analyse/scaling_points.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "normlab/base/error.h"
#include "normlab/base/file.h"
#include "normlab/config/flops.h"
#include "normlab/config/parameters.h"
#include "sandbox.h"
#include "study/sample_study.h"

namespace normlab {
namespace {

constexpr int vocab_size = 70;

StudyResults ladder_results(const std::string& extra, const FinalLoss& loss) {
  const std::string text =
      "[ladder]\ndepth = [2, 3, 4]\ntokens_per_param = [5, 10]\nwidth_per_layer = 16\nhead_width = 16\n"
      "[data]\nfold = [0, 1]\n" +
      extra;
  StudyResults results = sample_results(make_plan(read_study(parse_toml(text, "study.toml")), "study"), loss);
  for (size_t i = 0; i < results.trials.size(); ++i) {
    const Config& config = results.plan.trials[i].config;
    results.trials[i].record.step = config.train.max_steps;
    results.trials[i].record.parameters = count_parameters(config.model, config.norm, vocab_size).total;
  }
  return results;
}

TEST(ScalingPoints, OneRunAVariantWithExactCounts) {
  const StudyResults results =
      ladder_results("[norm]\nscheme = [\"none\", \"qknorm\"]\n",
                     [](size_t variant, int fold, int64_t) { return 2 + 0.1 * static_cast<double>(variant) + fold; });
  ScalingData data;
  add_study(data, results, CountedParams::total);
  ASSERT_EQ(data.runs.size(), 12u);
  const ScalingRun& run = data.runs[9];  // qknorm, depth 3, 10 tokens a weight
  const Config& config = results.plan.trials[9].config;
  EXPECT_EQ(run.scheme, "qknorm");
  EXPECT_EQ(run.size, "depth = 3, tokens_per_param = 10");
  EXPECT_NEAR(run.loss, 2 + 0.9 + 0.5, 1e-12);  // the mean over folds
  EXPECT_EQ(run.n_params, static_cast<double>(count_parameters(config.model, config.norm, vocab_size).total));
  EXPECT_EQ(run.n_tokens, double{1} * config.train.max_steps * config.train.batch_size * config.model.seq_len);
  EXPECT_EQ(run.flops, static_cast<double>(config.train.max_steps) * flops_of_step(config, vocab_size));
  ScalingData body;
  add_study(body, results, CountedParams::body);
  // qknorm has a gain a layer: 12 L d^2 weights, 2 L + 1 LayerNorms, L gains
  EXPECT_EQ(body.runs[9].n_params, 12 * 3 * 48 * 48 + 7 * 48 + 3);
}

TEST(ScalingPoints, DivergedAndMissingTrialsAreNoted) {
  StudyResults results = ladder_results("", [](size_t, int, int64_t) { return 2.0; });
  results.trials[0].record.status = TrialStatus::diverged;
  results.trials[1].record.status = TrialStatus::missing;
  results.trials[7].record.status = TrialStatus::missing;  // the other fold of the second variant
  ScalingData data;
  add_study(data, results, CountedParams::total);
  EXPECT_EQ(data.runs.size(), 5u);
  ASSERT_EQ(data.notes.size(), 3u);
  EXPECT_THAT(data.notes[0], testing::HasSubstr("diverged"));
}

TEST(ScalingPoints, BestRateAndBatchOfEachSize) {
  const StudyResults results = ladder_results("[optim]\nlr = [1e-3, 1e-2]\n", [](size_t variant, int, int64_t) {
    return 3 - 0.01 * static_cast<double>(variant);
  });
  ScalingData data;
  add_study(data, results, CountedParams::total);
  const ScalingData best = best_of_grids(data);
  ASSERT_EQ(best.runs.size(), 6u);
  for (const ScalingRun& run : best.runs) EXPECT_GE(run.lr, 5e-3);  // the later variants end lower
  EXPECT_THAT(best.notes.back(), testing::HasSubstr("6 runs are left out"));
}

TEST(ScalingPoints, Tables) {
  const TemporaryFolder folder;
  const auto read = [&](const std::string& text) {
    write_file_atomically(folder.path() / "points.csv", text);
    ScalingData data;
    add_points(data, folder.path() / "points.csv");
    return data;
  };
  const ScalingData data =
      read("loss, n_tokens,n_params,scheme,comment\r\n2.5,1e9,1e7,a,x\n\n2.4,2000000000,1e7,b,y\nnan,1e9,1e8,a,z\n");
  ASSERT_EQ(data.runs.size(), 2u);
  EXPECT_EQ(data.runs[0].scheme, "a");
  EXPECT_EQ(data.runs[1].n_tokens, 2e9);
  EXPECT_THAT(data.notes.at(0), testing::HasSubstr(":5 is left out"));
  const auto refused = [&](const std::string& text, const std::string& why) {
    try {
      read(text);
      ADD_FAILURE() << "not refused: " << why;
    } catch (const DataError& error) {
      EXPECT_THAT(error.what(), testing::HasSubstr(why));
    }
  };
  refused("", "is empty");
  refused("n_params,loss\n1,2\n", "no column n_tokens");
  refused("n_params,n_tokens,loss\n1e6,1e7\n", ":2] got 2 cells, expected 3");
  refused("n_params,n_tokens,loss\n1e6,1e7,-2\n", "loss is '-2'");
  refused("n_params,n_tokens,loss\n1e6,1e7,0\n", "loss is '0'");
  refused("n_params,n_tokens,loss\n1e6,many,2\n", "n_tokens is 'many'");
}

}  // namespace
}  // namespace normlab
