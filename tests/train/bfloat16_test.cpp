// Training with matrix products in bfloat16 beside the same in float32.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "normlab/train/stepper.h"
#include "recommended.h"

namespace normlab {
namespace {

using torch::Tensor;

ModelConfig small(const NormScheme& scheme, Precision dtype) {
  ModelConfig config = with_recommended({}, scheme);
  config.n_layers = 2;
  config.n_heads = 2;
  config.d_model = 16;
  config.seq_len = 8;
  config.kernels = Kernels::composite;
  config.dtype = dtype;
  resolve_model(config, scheme);
  return config;
}

Batch batch(int64_t step) {
  torch::manual_seed(static_cast<uint64_t>(step % 4));
  const Tensor text = torch::randint(0, 11, {4, 9}, torch::kInt64);
  return {text.slice(1, 0, 8).contiguous(), text.slice(1, 1).contiguous()};
}

std::vector<double> losses(const NormScheme& scheme, Precision dtype, int64_t steps) {
  Stepper stepper(DecoderLm(small(scheme, dtype), scheme, 11, 3), OptimizerSettings{});
  std::vector<double> list;
  for (int64_t step = 0; step < steps; ++step)
    list.push_back(stepper.step({batch(step)}, {.training = true, .seed = 1, .step = step}, 3e-3, 1.0).loss);
  for (const Tensor& parameter : stepper.parameters()) {
    EXPECT_EQ(parameter.scalar_type(), torch::kFloat32) << scheme.name;
    const Tensor& grad = parameter.grad();
    EXPECT_TRUE(!grad.defined() || grad.scalar_type() == torch::kFloat32) << scheme.name;
  }
  return list;
}

// docs/devices.md names the distance.
TEST(Bfloat16Training, EverySchemeStaysCloseToFloat32) {
  constexpr int64_t steps = 50;
  double farthest = 0.0;
  for (const NormScheme& scheme : catalogue()) {
    const auto exact = losses(scheme, Precision::float32, steps), rounded = losses(scheme, Precision::bfloat16, steps);
    double distance = 0.0;
    for (size_t i = 0; i < exact.size(); ++i) distance = std::max(distance, std::abs(exact[i] - rounded[i]));
    EXPECT_LT(distance, 0.25) << scheme.name;  // of losses that fall from 2.4; `grouped` was the farthest with 0.16
    EXPECT_GT(distance, 0.0) << scheme.name << ": was anything computed in bfloat16?";
    EXPECT_LT(rounded.back(), exact.front() - 0.1) << scheme.name << " learns";
    farthest = std::max(farthest, distance);
  }
  RecordProperty("farthest", std::to_string(farthest));
}

TEST(Bfloat16Training, LargeAndInfinitePStayFinite) {
  for (const double p : {8.0, std::numeric_limits<double>::infinity()}) {
    NormScheme scheme = find_scheme("lp");
    scheme.p = p;
    for (const double loss : losses(scheme, Precision::bfloat16, 20)) EXPECT_TRUE(std::isfinite(loss)) << p;
  }
}

TEST(Bfloat16Training, LogitsAndLossAreFloat32) {
  const NormScheme scheme = find_scheme("lp");
  const DecoderLm model(small(scheme, Precision::bfloat16), scheme, 11, 3);
  EXPECT_EQ(model.logits(batch(0).inputs, {}).scalar_type(), torch::kFloat32);
  EXPECT_EQ(model.hidden(batch(0).inputs, {}).scalar_type(), torch::kFloat32);
  EXPECT_EQ(model.loss(batch(0).inputs, batch(0).targets, {.training = true}).scalar_type(), torch::kFloat32);
}

}  // namespace
}  // namespace normlab
