#include "normlab/ops/linear.h"

#include <ATen/Parallel.h>
#include <gtest/gtest.h>

#include "fused_check.h"

namespace normlab {
namespace {

using torch::Tensor;

Tensor linear(const Tensor& x, const Tensor& weight, const Tensor& bias, bool fused) {
  return fused ? fused_linear(x, weight, bias, std::make_shared<PackedWeight>()) : torch::linear(x, weight, bias);
}

TEST(FusedLinear, IsAsExactAsComposite) {
  torch::manual_seed(5);
  for (const auto& [cols, out] : {std::pair<int64_t, int64_t>{7, 33}, {64, 65}, {384, 129}, {130, 900}}) {
    SCOPED_TRACE(std::to_string(cols) + " -> " + std::to_string(out));
    const Tensor x = torch::randn({3, 41, cols}), weight = torch::randn({out, cols}), bias = torch::randn({out});
    expect_as_exact(
        [](const std::vector<Tensor>& in, bool fused) { return std::vector{linear(in[0], in[1], in[2], fused)}; },
        {x, weight, bias});
    expect_as_exact(
        [](const std::vector<Tensor>& in, bool fused) { return std::vector{linear(in[0], in[1], {}, fused)}; },
        {x, weight});
  }
}

TEST(FusedLinear, AddsToASumOfTheSink) {
  const Tensor x = torch::randn({40, 9}), weight = torch::randn({5, 9}).requires_grad_(true);
  const auto packed = std::make_shared<PackedWeight>();
  packed->pack(weight);
  GradientSink sink;
  fused_linear(x, weight, {}, packed, &sink).sum().backward();  // the sink has no sum yet
  const Tensor once = weight.grad().clone();
  sink.collect({weight});
  int returned = 0;
  weight.register_hook([&](const Tensor& gradient) { returned += gradient.defined() ? 1 : 0; });
  fused_linear(x, weight, {}, packed, &sink).sum().backward();
  EXPECT_EQ(returned, 0);
  EXPECT_LT((weight.grad() - 2 * once).abs().max().item<double>(), 1e-5);
  sink.clear();
  fused_linear(x, weight, {}, packed, &sink).sum().backward();
  EXPECT_EQ(returned, 1);
  EXPECT_LT((weight.grad() - 3 * once).abs().max().item<double>(), 1e-5);
}

// Without gradients, a large weight that is not packed is copied in parts.
TEST(FusedLinear, PartsOfALargeWeightGiveTheSameBits) {
  const torch::NoGradGuard no_grad;
  const Tensor x = torch::randn({20, 1024}), weight = torch::randn({4200, 1024}), bias = torch::randn({4200});
  const auto packed = std::make_shared<PackedWeight>();
  packed->pack(weight);
  for (const Tensor& each : {bias, Tensor()})
    EXPECT_TRUE(torch::equal(fused_linear(x, weight, each, packed),
                             fused_linear(x, weight, each, std::make_shared<PackedWeight>())));
}

// A weight that has changed since it was packed is packed again, here or by the call.
TEST(FusedLinear, NeverUsesAnOldWeight) {
  const Tensor x = torch::randn({40, 9}), weight = torch::randn({5, 9});
  const auto packed = std::make_shared<PackedWeight>();
  packed->pack(weight);
  EXPECT_TRUE(packed->holds(weight));
  weight.mul_(2.0);
  EXPECT_FALSE(packed->holds(weight));
  const Tensor expected = torch::linear(x, weight);
  EXPECT_TRUE(torch::allclose(fused_linear(x, weight, {}, packed), expected, 1e-5, 1e-5));
  packed->pack(weight);
  EXPECT_TRUE(torch::allclose(fused_linear(x, weight, {}, packed), expected, 1e-5, 1e-5));
}

TEST(FusedLinear, ThreadsChangeNoBit) {
  const Tensor x = torch::randn({500, 70}), weight = torch::randn({90, 70}), bias = torch::randn({90});
  const int threads = at::get_num_threads();
  at::set_num_threads(1);
  const Tensor one = linear(x, weight, bias, true);
  at::set_num_threads(2);
  EXPECT_TRUE(torch::equal(one, linear(x, weight, bias, true)));
  at::set_num_threads(threads);
}

TEST(FusedLinear, OneRowLeavesTheBiasAlone) {
  const torch::NoGradGuard no_grad;
  const Tensor weight = torch::randn({8, 4}), bias = torch::randn({8}), kept = bias.clone(), x = torch::randn({1, 4});
  const auto packed = std::make_shared<PackedWeight>();
  packed->pack(weight);
  const Tensor y = fused_linear(x, weight, bias, packed);
  EXPECT_TRUE(torch::equal(bias, kept));
  EXPECT_TRUE(torch::allclose(y, torch::linear(x, weight, bias), 1e-5, 1e-6));
}

}  // namespace
}  // namespace normlab
