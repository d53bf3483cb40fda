#include "normlab/nn/stream_norm.h"

#include <gtest/gtest.h>

namespace normlab {
namespace {

using torch::Tensor;

NormScheme with(SublayerNorm kind) {
  NormScheme scheme;
  scheme.sublayer = kind;
  return scheme;
}

Tensor normed(const StreamNorm& norm, const Tensor& x) {
  Stream stream{x};
  return norm(stream);
}

Tensor sample() {
  torch::manual_seed(1);
  return torch::randn({3, 8}, torch::kFloat64) * 3.0;
}

TEST(StreamNorm, ScaleNormGivesTheLengthOfItsGain) {
  const StreamNorm norm(with(SublayerNorm::scale), 8, false, false, torch::kFloat64);
  const Tensor y = normed(norm, sample());
  EXPECT_TRUE(torch::allclose(y.norm(2, -1), torch::full({3}, std::sqrt(8.0), torch::kFloat64)));
  EXPECT_TRUE(torch::allclose(y / y.norm(2, -1, true), sample() / sample().norm(2, -1, true)));
  EXPECT_TRUE(torch::equal(normed(norm, torch::zeros({1, 8}, torch::kFloat64)), torch::zeros({1, 8}, torch::kFloat64)));
}

TEST(StreamNorm, DytIsATanh) {
  StreamNorm norm(with(SublayerNorm::dyt), 8, false, false, torch::kFloat64);
  EXPECT_TRUE(torch::allclose(normed(norm, sample()), torch::tanh(sample() * 0.5)));
  norm.visit("n", [](const std::string& name, Tensor& tensor, Role) {
    tensor.fill_(name == "n.weight" ? 3.0 : name == "n.bias" ? 0.25 : 2.0);
  });
  EXPECT_TRUE(torch::allclose(normed(norm, sample()), torch::tanh(sample() * 2.0) * 3.0 + 0.25));
}

TEST(StreamNorm, TheFactorMultipliesGainAndBias) {
  for (const SublayerNorm kind : {SublayerNorm::layer, SublayerNorm::rms, SublayerNorm::scale, SublayerNorm::dyt})
    for (const bool fused : {false, true}) {
      StreamNorm norm(with(kind), 8, true, fused, torch::kFloat32);
      norm.visit("n", [](const std::string&, Tensor& tensor, Role) { tensor.add_(0.3); });
      const Tensor x = sample().to(torch::kFloat32), before = normed(norm, x);
      norm.multiply_by(0.5);
      EXPECT_TRUE(torch::allclose(normed(norm, x), before * 0.5, 1e-5, 1e-6));
    }
}

}  // namespace
}  // namespace normlab
