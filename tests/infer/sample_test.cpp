#include "normlab/infer/sample.h"

#include <gtest/gtest.h>

#include <map>
#include <set>

namespace normlab {
namespace {

using torch::Tensor;

std::map<int64_t, int> counts(const Tensor& logits, const SampleOptions& options, int n = 4000) {
  std::map<int64_t, int> result;
  for (int i = 0; i < n; ++i) ++result[choose_token(floats_of(logits), options, i)];
  return result;
}

const Tensor logits = torch::tensor({0.1F, 0.2F, 0.4F, 0.3F}).log();

TEST(ChooseToken, DrawsInProportion) {
  const auto result = counts(logits, {});
  for (int64_t token = 0; token < 4; ++token)
    EXPECT_NEAR(result.at(token) / 4000.0, logits.exp()[token].item<double>(), 0.03);
}

TEST(ChooseToken, TemperatureSharpens) {
  EXPECT_EQ(choose_token(floats_of(logits), {.temperature = 0.0}, 0), 2);
  const auto cold = counts(logits, {.temperature = 0.5});
  EXPECT_NEAR(cold.at(2) / 4000.0, 0.16 / 0.30, 0.03);
}

TEST(ChooseToken, TopKAndTopPLeaveTheTailOut) {
  const auto top_two = counts(logits, {.top_k = 2});
  EXPECT_EQ(top_two.size(), 2U);
  EXPECT_NEAR(top_two.at(2) / 4000.0, 4.0 / 7.0, 0.03);
  EXPECT_EQ(counts(logits, {.top_p = 0.65}).size(), 2U);  // 0.4 + 0.3 reach it
  EXPECT_EQ(counts(logits, {.top_p = 0.75}).size(), 3U);
  EXPECT_EQ(counts(logits, {.top_p = 0.0}).size(), 1U);
}

// top_k 3 keeps 0.4, 0.3 and 0.2 of 0.9, that is 0.444, 0.333 and 0.222 of what is left: two of them reach 0.75, though
// of all tokens they make up 0.7 only; and two do not reach 0.8.
TEST(ChooseToken, TopPIsAShareOfWhatTopKKeeps) {
  const auto two = counts(logits, {.top_k = 3, .top_p = 0.75});
  ASSERT_EQ(two.size(), 2U);
  EXPECT_NEAR(two.at(2) / 4000.0, 4.0 / 7.0, 0.03);
  EXPECT_NEAR(two.at(3) / 4000.0, 3.0 / 7.0, 0.03);
  EXPECT_EQ(counts(logits, {.top_k = 3, .top_p = 0.8}).size(), 3U);
  EXPECT_EQ(counts(logits, {.top_k = 2, .top_p = 0.55}).size(), 1U);  // 0.4 of 0.7 is 0.571
}

TEST(ChooseToken, IsAFunctionOfSeedAndIndex) {
  EXPECT_EQ(choose_token(floats_of(logits), {.seed = 3}, 5), choose_token(floats_of(logits), {.seed = 3}, 5));
  EXPECT_NE(counts(logits, {.seed = 3}, 50), counts(logits, {.seed = 4}, 50));
}

// The cache must not change what is generated, also beyond the window.
TEST(Generate, EqualsRecomputingEveryStep) {
  ModelConfig config;
  config.n_layers = 2;
  config.n_heads = 2;
  config.d_model = 16;
  config.seq_len = 12;
  resolve_model(config, find_scheme("lp"));
  DecoderLm model(config, find_scheme("lp"), 11, 3);
  torch::NoGradGuard no_grad;
  torch::manual_seed(4);
  for (auto& [name, tensor] : model.parameters()) tensor.add_(torch::randn_like(tensor), 0.2);
  const SampleOptions options{.max_tokens = 10, .temperature = 0.0};
  std::vector<int64_t> cached, text = {1, 2};
  generate(model, text, options, [&](int64_t token) {
    cached.push_back(token);
    return true;
  });
  for (size_t i = 0; i < cached.size(); ++i) {
    const Tensor scores = model.logits(torch::tensor(text, torch::kInt64).unsqueeze(0), Pass{})[0][-1];
    text.push_back(scores.argmax().item<int64_t>());
    EXPECT_EQ(cached[i], text.back()) << i;
  }
  int made = 0;
  generate(model, std::vector<int64_t>{1, 2}, {.max_tokens = 100}, [&](int64_t token) {
    EXPECT_TRUE(token >= 0 && token < 11);
    ++made;
    return made < 60;
  });
  EXPECT_EQ(made, 60);
}

// Prompts of different lengths, beyond the window, and texts that end early.
TEST(Generate, TextsSideBySideAreThoseOfEachAlone) {
  for (const Kernels kernels : {Kernels::fused, Kernels::composite}) {
    ModelConfig config;
    config.n_layers = 2, config.n_heads = 2, config.d_model = 16, config.seq_len = 12, config.kernels = kernels;
    resolve_model(config, find_scheme("lp"));
    const DecoderLm model(config, find_scheme("lp"), 11, 3);
    const std::vector<std::vector<int64_t>> prompts = {
        {1, 2}, {3}, {4, 5, 6, 7, 8, 9, 10, 1, 2, 3, 4, 5, 6, 7}, {9, 9}};
    const SampleOptions options{.max_tokens = 30, .temperature = 0.8, .seed = 5};
    std::vector<std::vector<int64_t>> together(prompts.size());
    const Generator make(model);
    make(prompts, options, [&](size_t text, int64_t token) {
      together[text].push_back(token);
      return together[text].size() < 5 + 9 * text;
    });
    for (size_t text = 0; text < prompts.size(); ++text) {
      std::vector<int64_t> alone;
      generate(model, prompts[text], options, [&](int64_t token) {
        alone.push_back(token);
        return alone.size() < 5 + 9 * text;
      });
      EXPECT_EQ(together[text], alone) << text;
    }
  }
}

TEST(ChooseToken, TakesAnInvalidLogitRatherThanFailing) {
  const std::vector<float> invalid = {1.0F, std::nanf(""), 2.0F};
  EXPECT_EQ(choose_token(invalid, {.temperature = 0.0}, 0), 1);
  EXPECT_EQ(choose_token(invalid, {}, 0), 1);
}

}  // namespace
}  // namespace normlab
