// What is computed in float32 while matrix products are in bfloat16.
#include "normlab/ops/precision.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "normlab/ops/add_norm.h"
#include "normlab/ops/attention.h"
#include "normlab/ops/lp_norm.h"

namespace normlab {
namespace {

using torch::Tensor;
constexpr double inf = std::numeric_limits<double>::infinity();
constexpr auto bfloat16 = torch::kBFloat16;

torch::ScalarType type_of_a_product() {
  const Tensor x = torch::ones({2, 2});
  return torch::matmul(x, x).scalar_type();
}

TEST(Autocast, IsOnWhileItLivesAndNoLonger) {
  EXPECT_EQ(type_of_a_product(), torch::kFloat32);
  try {
    const Autocast on(torch::kCPU, true);
    EXPECT_EQ(type_of_a_product(), bfloat16);
    {
      const Autocast off(torch::kCPU, false);
      EXPECT_EQ(type_of_a_product(), torch::kFloat32);
      const Autocast again(torch::kCPU, true), and_again(torch::kCPU, true);
      EXPECT_EQ(type_of_a_product(), bfloat16);
    }
    EXPECT_EQ(type_of_a_product(), bfloat16);
    throw 1;
  } catch (int) {
  }
  EXPECT_EQ(type_of_a_product(), torch::kFloat32);
  EXPECT_FALSE(Autocast::is_on(torch::kMeta));
}

// Every norm of queries and keys: float32 out of bfloat16, right to the rounding of float32.
TEST(Bfloat16, QueriesAndKeysAreNormalisedInFloat32) {
  torch::manual_seed(1);
  const Tensor x = torch::randn({2, 3, 2, 16}).to(bfloat16);
  const Autocast on(torch::kCPU, true);
  for (const QkNorm qk : {QkNorm::none, QkNorm::lp, QkNorm::rms, QkNorm::layer})
    for (const double p : {1.0, 2.0, 8.0, inf}) {
      const AttentionCall call{.form = {.qk = qk, .p = p}};
      const AttentionWeights weights{.gain = torch::full({2}, 3.0)};
      const Tensor q = normalise_queries(x, call, weights, 0), k = normalise_keys(x, call, weights, 0);
      EXPECT_EQ(q.scalar_type(), torch::kFloat32);
      EXPECT_EQ(k.scalar_type(), torch::kFloat32);
      const AttentionWeights exact{.gain = torch::full({2}, 3.0, torch::kFloat64)};
      EXPECT_TRUE(
          torch::allclose(q.to(torch::kFloat64), normalise_queries(x.to(torch::kFloat64), call, exact, 0), 1e-6, 1e-6));
    }
}

TEST(Bfloat16, StreamNormsAreComputedInFloat32) {
  torch::manual_seed(1);
  const Tensor x = torch::randn({2, 3, 16}).to(bfloat16), ones = torch::ones({16}), zeros = torch::zeros({16});
  const Autocast on(torch::kCPU, true);
  for (const SublayerNorm kind :
       {SublayerNorm::layer, SublayerNorm::rms, SublayerNorm::scale, SublayerNorm::dyt, SublayerNorm::none}) {
    const NormForm form{.kind = kind, .eps = 1e-5};
    const NormWeights weights{.weight = ones, .bias = zeros, .slope = torch::ones({1})};
    const auto wide = [](const Tensor& t) { return t.to(torch::kFloat64); };
    const NormWeights exact{.weight = wide(ones), .bias = wide(zeros), .slope = wide(torch::ones({1}))};
    const Tensor y = add_norm(x, {}, {}, form, weights).y;
    EXPECT_EQ(y.scalar_type(), torch::kFloat32);
    EXPECT_TRUE(torch::allclose(wide(y), add_norm(wide(x), {}, {}, form, exact).y, 1e-6, 1e-6));
  }
}

TEST(Bfloat16, ExtremeVectorsStayFinite) {
  const Autocast on(torch::kCPU, true);
  for (const double p : {1.0, 2.0, 8.0, inf})
    for (const double size : {0.0, 1e-38, 1e-30, 1.0, 1e30, 3e38}) {
      torch::manual_seed(1);
      const Tensor x = ((torch::rand({4, 16}) - 0.5) * 2.0 * size).to(bfloat16).requires_grad_(true);
      const Tensor learned = torch::full({1}, 8.0).requires_grad_(true);
      // Of such vectors 1e-12, the usual epsilon, would be the whole norm.
      const std::vector<Tensor> outputs = {lp_normalize(x, p, 1e-38), lp_normalize(x, p, 1e-12),
                                           lp_normalize(x, learned, 1e-12)};
      for (const Tensor& y : outputs) {
        EXPECT_TRUE(y.isfinite().all().item<bool>()) << p << " " << size;
        EXPECT_LE(y.abs().max().item<double>(), 1.0 + 1e-6);
      }
      outputs[1].sum().backward();
      EXPECT_EQ(x.grad().scalar_type(), bfloat16);
      EXPECT_TRUE(x.grad().isfinite().all().item<bool>()) << p << " " << size;
    }
}

// Logits that bfloat16 cannot tell apart: near 300 its numbers are 2 apart, here they differ by 1.
TEST(Bfloat16, TheSoftmaxReadsFloat32) {
  const int64_t s = 4, d = 16;
  const Tensor q = torch::zeros({1, 1, 1, d}), k = torch::zeros({1, s, 1, d}), v = torch::zeros({1, s, 1, d});
  q.select(3, 0).fill_(16.0), q.select(3, 1).fill_(1.0);
  k.select(3, 0).fill_(18.75);
  for (int64_t j = 0; j < s; ++j) k[0][j][0][1] = static_cast<double>(j), v[0][j][0][j] = 1.0;
  const Tensor logits = torch::arange(s) + 300.0, expected = logits.softmax(0);
  const Autocast on(torch::kCPU, true);
  for (const double cap : {0.0, 1e6}) {  // PyTorch's kernel, and logits as a tensor
    const AttentionCall call{.form = {.soft_cap = cap}, .causal = false};
    EXPECT_EQ(attention_logits(q.to(bfloat16), k.to(bfloat16), call).scalar_type(), torch::kFloat32);
    const Tensor mixed = attend(q, k, v.to(bfloat16), call);
    EXPECT_EQ(mixed.scalar_type(), bfloat16);
    EXPECT_LT((mixed.flatten().slice(0, 0, s) - expected).abs().max().item<double>(), 1e-2) << cap;
  }
}

}  // namespace
}  // namespace normlab
