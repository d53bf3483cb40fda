#include "normlab/ops/lp_norm.h"

#include <gtest/gtest.h>
#include <torch/autograd.h>

#include <cmath>
#include <limits>

#include "gradient_check.h"

namespace normlab {
namespace {

using torch::Tensor;
constexpr double inf = std::numeric_limits<double>::infinity();
constexpr double all_p[] = {0.5, 1.0, 1.5, 2.0, 2.5, 3.0, M_PI, 4.0, 8.0, 64.0, inf};

Tensor sample(std::initializer_list<int64_t> shape) {
  torch::manual_seed(7);
  return torch::randn(shape, torch::kFloat64);
}

TEST(LpNormalize, GivesUnitNorm) {
  for (double p : all_p) {
    const Tensor y = lp_normalize(sample({5, 33}), p, 1e-12);
    const Tensor norm = std::isinf(p) ? y.abs().amax(-1) : y.abs().pow(p).sum(-1).pow(1.0 / p);
    EXPECT_LT((norm - 1.0).abs().max().item<double>(), 1e-12) << p;
  }
}

TEST(LpNormalize, GradientMatchesCentralDifferences) {
  for (double p : all_p)
    for (int64_t d : {1, 7, 8, 33})
      expect_gradients([&](const auto& in) { return lp_normalize(in[0], p, 1e-12); }, {sample({3, d})});
}

TEST(LpNormalize, GradientOfLearnedP) {
  const Tensor p = torch::tensor({{1.3}, {2.0}, {3.7}}, torch::kFloat64);
  expect_gradients([&](const auto& in) { return lp_normalize(in[0], in[1], 1e-12); }, {sample({4, 3, 16}), p});
}

TEST(LpNormalize, LearnedAndFixedPAgree) {
  for (double p : {1.0, 1.5, 2.0, 3.0, 7.5}) {
    const Tensor x = sample({6, 31});
    const Tensor learned = lp_normalize(x, torch::full({1}, p, torch::kFloat64), 1e-12);
    EXPECT_TRUE(torch::allclose(lp_normalize(x, p, 1e-12), learned, 1e-13, 1e-15)) << p;
  }
}

// Zero vectors, single entries, denormals and huge values: finite values and gradients in float32.
TEST(LpNormalize, ExtremesStayFinite) {
  const Tensor x = torch::zeros({7, 16}, torch::kFloat32);
  x[1][3] = 5.0;
  x[2].fill_(1e-42);
  x[3].fill_(1e30);
  x[4][0] = 1e30;
  x[4][1] = 1e-42;
  x[5].fill_(-1e-20);
  x[6].copy_(torch::linspace(-1, 1, 16));
  for (double p : all_p) {
    const Tensor in = x.clone().requires_grad_(true);
    const Tensor y = lp_normalize(in, p, 1e-12);
    (y * torch::linspace(-1, 1, 16)).sum().backward();
    EXPECT_TRUE(y.isfinite().all().item<bool>()) << p;
    EXPECT_TRUE(in.grad().isfinite().all().item<bool>()) << p;
    EXPECT_EQ(y[0].abs().max().item<float>(), 0.0F) << p;
    EXPECT_FLOAT_EQ(y[1][3].item<float>(), 1.0F) << p;
    EXPECT_NEAR(y[3][0].item<float>(), std::isinf(p) ? 1.0 : std::pow(16.0, -1.0 / p), 1e-5) << p;
  }
}

TEST(LpNormalize, NormBelowEpsIsTheConstantEps) {
  const Tensor x = torch::full({1, 4}, 1e-3, torch::kFloat64).requires_grad_(true);
  const Tensor y = lp_normalize(x, 3.0, 0.5);
  EXPECT_NEAR(y[0][0].item<double>(), 2e-3, 1e-15);
  y.sum().backward();
  EXPECT_NEAR(x.grad()[0][0].item<double>(), 2.0, 1e-12);
}

TEST(LpNormalize, RunsOnMeta) {
  const Tensor x = torch::empty({2, 3, 8}, torch::device(torch::kMeta)).requires_grad_(true);
  for (double p : all_p) {
    const Tensor y = lp_normalize(x, p, 1e-12);
    EXPECT_EQ(y.sizes(), x.sizes());
    EXPECT_TRUE(y.is_meta());
    torch::autograd::grad({y.sum()}, {x});
  }
}

}  // namespace
}  // namespace normlab
