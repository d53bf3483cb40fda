// The claims of docs/theory.md.
#include "normlab/probe/theory.h"

#include <gtest/gtest.h>

#include <cmath>

#include "normlab/models/decoder_lm.h"
#include "normlab/ops/attention.h"

namespace normlab {
namespace {

using torch::Tensor;

const std::vector<int64_t> widths = {16, 64, 256, 1024};

// 16 draws of 64 x 64 logits: their standard deviation scatters by a percent or two.
TEST(Theory, TheScaleKeepsTheVarianceOfLogitsAtOne) {
  for (const TheoryPoint& point : theory_points(logit_rules()[1], widths, 3)) EXPECT_NEAR(point.logit_std, 1.0, 0.05);
  for (const TheoryPoint& point : theory_points(logit_rules()[0], widths, 3))
    EXPECT_NEAR(point.logit_std / std::sqrt(static_cast<double>(point.d_head)), 1.0, 0.05);
}

// ||QK^T||_F grows as n sqrt(d), the scaled one stays at n, and a norm bounds it by g n.
TEST(Theory, FrobeniusNormOfTheLogits) {
  constexpr double n = 64;
  const auto plain = theory_points(logit_rules()[0], widths, 3), scaled = theory_points(logit_rules()[1], widths, 3),
             cosine = theory_points(logit_rules()[2], widths, 3);
  for (size_t i = 0; i < widths.size(); ++i) {
    const double root = std::sqrt(static_cast<double>(widths[i]));
    EXPECT_NEAR(plain[i].frobenius / (n * root), 1.0, 0.05);
    EXPECT_NEAR(scaled[i].frobenius / n, 1.0, 0.05);
    EXPECT_NEAR(cosine[i].frobenius / (12 * n / root), 1.0, 0.05);
    EXPECT_LT(cosine[i].frobenius, 12 * n);
  }
}

TEST(Theory, WithoutItAttentionSaturatesAndTheGradientOfAQueryVanishes) {
  const auto plain = theory_points(logit_rules()[0], widths, 3), scaled = theory_points(logit_rules()[1], widths, 3);
  for (size_t i = 1; i < widths.size(); ++i) {
    EXPECT_LT(plain[i].relative_entropy, plain[i - 1].relative_entropy);
    EXPECT_GT(plain[i].saturated, plain[i - 1].saturated);
    EXPECT_LT(plain[i].grad_q, plain[i - 1].grad_q);
    EXPECT_NEAR(scaled[i].relative_entropy, scaled[0].relative_entropy, 0.02);
  }
  EXPECT_GT(plain.back().saturated, 0.5);
  EXPECT_LT(plain.back().grad_q, 0.1 * scaled.back().grad_q);
  EXPECT_EQ(scaled.back().saturated, 0.0);
}

TEST(Theory, BoundsOfTheLogitsHoldAndAreReached) {
  for (const double p : {1.0, 1.5, 2.0, 2.5, 3.0, 4.0}) {
    for (const TheoryPoint& point : theory_points({"", false, p, 7.0}, widths, 5))
      EXPECT_LE(point.max_logit, logit_bound(p, 7.0, point.d_head) * (1 + 1e-12)) << p;
    const AttentionCall call{.form = {.qk = QkNorm::lp, .p = p}, .causal = false};
    const AttentionWeights weights{.gain = torch::full({1}, 7.0, torch::kFloat64)};
    // Up to p = 2 equal unit vectors along an axis reach it, beyond equal vectors of equal entries.
    const Tensor x = p <= 2.0 ? torch::eye(64, torch::kFloat64)[0] : torch::ones({64}, torch::kFloat64);
    const Tensor row = x.view({1, 1, 1, 64});
    const Tensor logit =
        attention_logits(normalise_queries(row, call, weights, 0), normalise_keys(row, call, weights, 0), call);
    EXPECT_NEAR(logit.item<double>(), logit_bound(p, 7.0, 64), 1e-9) << p;
  }
}

// Under a norm, scaling W_q or W_k of a head changes nothing, so that the gradient stands at right angles to it.
TEST(Theory, TheGradientIsOrthogonalToWeightsWhoseScaleANormTakesOut) {
  for (const char* name : {"qknorm", "lp", "none"}) {
    const NormScheme& scheme = find_scheme(name);
    ModelConfig config;
    config.n_layers = 2, config.n_heads = 2, config.d_model = 16, config.seq_len = 12, config.bias = true;
    resolve_model(config, scheme);
    DecoderLm model(config, scheme, 11, 3, torch::kFloat64);
    torch::manual_seed(5);
    const Tensor text = torch::randint(0, 11, {3, 13}, torch::kInt64);
    model.loss(text.slice(1, 0, 12), text.slice(1, 1), {}).backward();
    double cosine = 0.0;
    NamedTensors parameters = model.parameters();
    for (size_t i = 0; i < parameters.size(); ++i) {
      if (!parameters[i].first.ends_with(".attn.qkv.weight")) continue;
      ASSERT_TRUE(parameters[i + 1].first.ends_with(".attn.qkv.bias"));
      const auto rows = [&](const Tensor& weight, const Tensor& bias, int64_t head) {
        return torch::cat({weight, bias.unsqueeze(1)}, 1).slice(0, 8 * head, 8 * (head + 1)).flatten();
      };
      const Tensor &w = parameters[i].second, &b = parameters[i + 1].second;
      for (int64_t head = 0; head < 4; ++head) {  // two of queries, two of keys
        const Tensor x = rows(w.detach(), b.detach(), head), g = rows(w.grad(), b.grad(), head);
        cosine = std::max(cosine, std::abs((x.dot(g) / (x.norm() * g.norm())).item<double>()));
      }
    }
    if (scheme.qk == QkNorm::none)
      EXPECT_GT(cosine, 1e-3) << name;
    else
      EXPECT_LT(cosine, 1e-9) << name;
  }
}

}  // namespace
}  // namespace normlab
