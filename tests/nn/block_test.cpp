#include "normlab/nn/block.h"

#include <gtest/gtest.h>

#include "recommended.h"

namespace normlab {
namespace {

using torch::Tensor;

ModelConfig small(const NormScheme& scheme) {
  ModelConfig config;
  config.n_heads = 2;
  config.d_model = 8;
  config.seq_len = 6;
  config = with_recommended(config, scheme);
  resolve_model(config, scheme);
  return config;
}

// The stream after the layer.
Tensor run(const Block& block, const Tensor& x, const Pass& pass) {
  Stream stream{x};
  block(stream, pass, Tensor(), nullptr);
  return StreamNorm()(stream);  // no norm: adds the last branch
}

// Every scheme and placement, on a device that has shapes but no numbers. With RMSNorm, because PyTorch's
// layer_norm and relu have meta kernels in Python only.
TEST(Block, RunsOnMeta) {
  const auto meta = torch::TensorOptions().device(torch::kMeta).dtype(torch::kFloat32);
  for (NormScheme scheme : catalogue())
    for (NormPlacement placement : {NormPlacement::pre, NormPlacement::post})
      for (Activation activation : {Activation::gelu, Activation::swiglu}) {
        if (scheme.residual == Residual::add && scheme.sublayer_scale == DepthScale::one) scheme.placement = placement;
        if (scheme.sublayer == SublayerNorm::layer) scheme.sublayer = SublayerNorm::rms;
        ModelConfig config = small(scheme);
        config.kernels = Kernels::composite;
        config.activation = activation;
        config.dropout = 0.1;
        const Block block(config, scheme, 0, meta);
        const Tensor x = torch::empty({2, 6, 8}, meta);
        EXPECT_EQ(run(block, x, {.training = true}).sizes(), x.sizes()) << scheme.name;
      }
}

// With all weights zero a branch gives nothing: pre-norm passes the stream on, post-norm normalises it twice.
TEST(Block, PlacementSaysWhatIsNormalised) {
  NormScheme scheme = find_scheme("none");
  torch::manual_seed(1);
  const Tensor x = torch::randn({1, 3, 8}) * 5.0;
  EXPECT_TRUE(torch::equal(run(Block(small(scheme), scheme, 0, torch::kFloat32), x, Pass{}), x));
  scheme.placement = NormPlacement::post;
  const Tensor y = run(Block(small(scheme), scheme, 0, torch::kFloat32), x, Pass{});
  EXPECT_TRUE(torch::allclose(y, torch::layer_norm(x, {8}), 1e-4, 1e-4));
}

TEST(Block, DropoutActsOnlyInTraining) {
  const NormScheme scheme = find_scheme("none");
  ModelConfig config = small(scheme);
  config.dropout = 0.5;
  Block block(config, scheme, 0, torch::kFloat32);
  torch::manual_seed(1);
  block.visit("b", [](const std::string&, Tensor& tensor, Role) { tensor.normal_(); });
  const Tensor x = torch::randn({2, 6, 8});
  const Pass evaluating, training{.training = true, .seed = 1, .step = 1}, next{.training = true, .seed = 1, .step = 2};
  EXPECT_TRUE(torch::equal(run(block, x, evaluating), run(block, x, evaluating)));
  EXPECT_TRUE(torch::equal(run(block, x, training), run(block, x, training)));
  EXPECT_FALSE(torch::equal(run(block, x, training), run(block, x, evaluating)));
  EXPECT_FALSE(torch::equal(run(block, x, training), run(block, x, next)));
}

}  // namespace
}  // namespace normlab
