// Ranks as threads: what they compute together, how the optimiser is shared out, and what they say of each other.
#include "normlab/train/rank_sums.h"

#include <ATen/Parallel.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "normlab/base/error.h"
#include "normlab/train/stepper.h"
#include "recommended.h"
#include "train/thread_ranks.h"

namespace normlab {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;
using torch::Tensor;

Stepper make_stepper(Kernels kernels, const OptimizerSettings& settings) {
  const NormScheme scheme = find_scheme("ngpt");  // with constraints on its weights
  ModelConfig config = with_recommended({}, scheme);
  config.n_layers = 2, config.n_heads = 2, config.d_model = 16, config.seq_len = 8, config.kernels = kernels;
  resolve_model(config, scheme);
  return {DecoderLm(config, scheme, 11, 3), settings};
}

Batch rows_of_text(int64_t rows) {
  const Tensor text = torch::arange(rows * 9, torch::kInt64).mul(7).remainder(11).view({rows, 9});
  return {text.slice(1, 0, 8).contiguous(), text.slice(1, 1).contiguous()};
}

struct Result {
  double loss = 0.0;
  std::vector<Tensor> weights;
  NamedTensors state;  // whole
  int64_t own = 0;     // entries of the state that this rank has
};

Result three_steps(Stepper& stepper) {
  Result result;
  for (int64_t step = 0; step < 3; ++step)
    result.loss = stepper.step({rows_of_text(5)}, {.training = true, .seed = 1, .step = step}, 1e-2, 1.0).loss;
  for (const Tensor& weight : stepper.parameters()) result.weights.push_back(weight.detach().clone());
  for (const auto& [name, tensor] : stepper.optimizer().state()) result.own += tensor.defined() ? tensor.numel() : 0;
  for (const auto& [name, tensor] : stepper.optimizer_state()) result.state.emplace_back(name, tensor.clone());
  return result;
}

std::vector<Result> with_ranks_as_threads(int size, bool shard, Kernels kernels, const OptimizerSettings& settings) {
  at::set_num_threads(1);
  std::vector<Result> results(static_cast<size_t>(size));
  on_ranks(size, [&](RankGroup& ranks) {
    Stepper stepper = make_stepper(kernels, settings);
    stepper.share_with(ranks, shard);
    results[static_cast<size_t>(ranks.rank())] = three_steps(stepper);
  });
  return results;
}

void expect_same(const std::vector<Tensor>& a, const std::vector<Tensor>& b) {
  ASSERT_EQ(a.size(), b.size());
  for (size_t i = 0; i < a.size(); ++i) EXPECT_TRUE(a[i].equal(b[i])) << i;
}

TEST(RankSums, ShardsChangeNoBitAndDivideTheState) {
  for (const Kernels kernels : {Kernels::fused, Kernels::composite})
    for (const OptimizerSettings& settings : {OptimizerSettings(AdamWSettings{}), OptimizerSettings(MuonSettings{})}) {
      const bool muon = settings.index() == 1;
      Stepper alone = make_stepper(kernels, settings);
      const Result one = three_steps(alone);
      const auto whole = with_ranks_as_threads(3, false, kernels, settings);
      const auto shards = with_ranks_as_threads(3, true, kernels, settings);
      int64_t own = 0;
      for (const Result& rank : shards) {
        expect_same(rank.weights, whole.front().weights);
        EXPECT_LT(rank.own, one.own / 2);
        own += rank.own;
      }
      EXPECT_EQ(own - one.own, 2 * static_cast<int64_t>(one.weights.size()) - (muon ? 2 * 8 : 0));  // counts of steps
      EXPECT_NEAR(shards.front().loss, one.loss, 1e-5);
      ASSERT_EQ(shards.front().state.size(), one.state.size());
      EXPECT_TRUE(shards.back().state.empty());
      for (size_t i = 0; i < one.state.size(); ++i) {
        EXPECT_EQ(shards.front().state[i].first, one.state[i].first);
        EXPECT_TRUE(shards.front().state[i].second.equal(whole.front().state[i].second)) << one.state[i].first;
        EXPECT_TRUE(shards.front().state[i].second.allclose(one.state[i].second, 1e-3, 1e-6)) << one.state[i].first;
      }
      // Muon's matrices are divided without shards, too.
      EXPECT_EQ(whole.front().own < one.own, muon);
    }
}

TEST(RankSums, RanksWhoseWeightsDifferAreNamed) {
  std::vector<std::string> said(3);
  on_ranks(3, [&](RankGroup& ranks) {
    const Tensor weights = torch::ones({4, 5});
    require_same_weights(ranks, {weights}, 7);
    if (ranks.rank() == 2) weights[3][4] = 1.0000001F;
    try {
      require_same_weights(ranks, {weights}, 100);
    } catch (const Error& error) {
      said[static_cast<size_t>(ranks.rank())] = error.what();
    }
  });
  for (const std::string& each : said)
    EXPECT_THAT(each, AllOf(HasSubstr("after step 100 the weights of rank 2 on here differ from those of rank 0"),
                            Not(HasSubstr("rank 1"))));
}

TEST(RankSums, SlowRanksAreReported) {
  std::vector<std::string> slow, even;
  on_ranks(3, [&](RankGroup& ranks) {
    const auto lines = slow_ranks(ranks, ranks.rank() == 1 ? 3.2 : 2.0);
    const auto none = slow_ranks(ranks, ranks.rank() == 1 ? 2.9 : 2.0);
    if (ranks.rank() == 0) slow = lines, even = none;
  });
  EXPECT_THAT(slow, ElementsAre("rank 1 on here is slow: its part of a step takes 1.6 times the median of all ranks"));
  EXPECT_TRUE(even.empty());
}

TEST(RankSums, RanksOfAHostAreCounted) {
  std::vector<int> places(3);
  on_ranks(3, [&](RankGroup& ranks) { places[static_cast<size_t>(ranks.rank())] = place_on_host(ranks); });
  EXPECT_THAT(places, ElementsAre(0, 1, 2));
}

}  // namespace
}  // namespace normlab
