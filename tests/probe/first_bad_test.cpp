#include "probe/first_bad.h"

#include <gtest/gtest.h>

#include <limits>

namespace normlab {
namespace {

using torch::Tensor;

DecoderLm model(Kernels kernels) {
  const NormScheme& scheme = find_scheme("none");
  ModelConfig config;
  config.n_layers = 3, config.n_heads = 2, config.d_model = 16, config.seq_len = 8, config.bias = true;
  config.kernels = kernels;
  resolve(config, scheme);
  return {config, scheme, 11, 3};
}

std::string found(DecoderLm& model) {
  FirstBad finder(model);
  torch::manual_seed(1);
  const Tensor text = torch::randint(0, 11, {2, 8}, torch::kInt64);
  const Tensor loss = model.loss(text, text, {.training = true, .observer = &finder});
  loss.backward();
  std::vector<Tensor> gradients;
  for (const auto& [name, tensor] : model.parameters()) gradients.push_back(tensor.grad());
  finder.gradients({gradients});
  return finder.name();
}

void fill(DecoderLm& model, const std::string& name, int64_t first, int64_t last, double value) {
  const torch::NoGradGuard no_grad;
  for (auto& [each, tensor] : model.parameters())
    if (each == name) tensor.slice(0, first, last).fill_(value);
}

TEST(FirstBad, NamesTheTensorAndTheLayer) {
  constexpr double inf = std::numeric_limits<double>::infinity();
  for (const Kernels kernels : {Kernels::fused, Kernels::composite}) {
    DecoderLm sound = model(kernels);
    EXPECT_EQ(found(sound), "");
    // A weight that is infinite itself; finite ones whose product is not: the second key head of layer 1, the MLP of 2.
    DecoderLm weight = model(kernels);
    fill(weight, "layers.2.mlp.in.weight", 0, 1, inf);
    EXPECT_EQ(found(weight), "the weight layers.2.mlp.in.weight (infinite)");
    DecoderLm keys = model(kernels);
    fill(keys, "layers.1.attn_norm.weight", 0, 16, 1e30);
    fill(keys, "layers.1.attn.qkv.weight", 24, 32, 3e38);
    EXPECT_EQ(found(keys).substr(0, 27), "the keys of layer 1, head 1");
    DecoderLm mlp = model(kernels);
    fill(mlp, "layers.2.mlp.out.weight", 0, 16, 3e38);
    fill(mlp, "layers.2.mlp.in.bias", 0, 64, 3e38);
    EXPECT_EQ(found(mlp).substr(0, 32), "the output of the MLP of layer 2");
  }
}

}  // namespace
}  // namespace normlab
