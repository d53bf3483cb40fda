// Mechanisms that act around a step: QK-clip, sigma-Reparam, z-loss, FixNorm.
#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "normlab/train/stepper.h"

namespace normlab {
namespace {

using torch::Tensor;

ModelConfig small(const NormScheme& scheme, Kernels kernels, int n_kv_heads = 2) {
  ModelConfig config;
  config.n_layers = 2;
  config.n_heads = 2;
  config.n_kv_heads = n_kv_heads;
  config.d_model = 16;
  config.seq_len = 8;
  config.kernels = kernels;
  resolve_model(config, scheme);
  return config;
}

Batch batch() {
  torch::manual_seed(3);
  const Tensor text = torch::randint(0, 11, {4, 9}, torch::kInt64);
  return {text.slice(1, 0, 8).contiguous(), text.slice(1, 1).contiguous()};
}

std::map<std::string, Tensor> copies(DecoderLm& model) {
  std::map<std::string, Tensor> list;
  for (auto& [name, tensor] : model.state()) list.emplace(name, tensor.detach().clone());
  return list;
}

constexpr double no_learning = 0.0;

TEST(QkClip, ScalesQueriesAndKeysOfHeadsThatWentTooHigh) {
  for (const Kernels kernels : {Kernels::composite, Kernels::fused})
    for (const int n_kv_heads : {2, 1}) {
      NormScheme scheme = find_scheme("qk-clip");
      scheme.qk_clip = 0.01;
      Stepper stepper(DecoderLm(small(scheme, kernels, n_kv_heads), scheme, 11, 3), {});
      {
        const torch::NoGradGuard no_grad;
        for (auto& [name, tensor] : stepper.model().parameters())
          if (name.ends_with("qkv.weight")) tensor.mul_(5.0);
      }
      auto before = copies(stepper.model());
      ASSERT_TRUE(stepper.step({batch()}, {.training = true}, no_learning, 1.0).finite);
      auto after = copies(stepper.model());
      const std::string name = "layers.0.attn.qkv.weight";
      const auto ratio = [&](int64_t head) {
        const Tensor was = before.at(name).narrow(0, head * 8, 8), is = after.at(name).narrow(0, head * 8, 8);
        return is.norm().item<double>() / was.norm().item<double>();
      };
      EXPECT_LT(ratio(0), 0.99);
      if (n_kv_heads == 2)
        EXPECT_NEAR(ratio(0), ratio(2), 1e-5);  // sqrt(gamma) on both
      else
        EXPECT_DOUBLE_EQ(ratio(2), 1.0);             // a key head that both queries share
      EXPECT_DOUBLE_EQ(ratio(n_kv_heads + 2), 1.0);  // values
      // The largest logit is tau now: the next step changes nothing more.
      stepper.step({batch()}, {.training = true}, no_learning, 1.0);
      EXPECT_TRUE(torch::allclose(copies(stepper.model()).at(name), after.at(name), 1e-4, 1e-7));
    }
}

TEST(QkClip, ReadsTheLogitsOfItsOwnStepOnly) {
  NormScheme scheme = find_scheme("qk-clip");
  scheme.qk_clip = 0.01;
  for (const Kernels kernels : {Kernels::composite, Kernels::fused}) {
    const auto after_a_step = [&](bool pass_before) {
      Stepper stepper(DecoderLm(small(scheme, kernels), scheme, 11, 3), {});
      if (pass_before) {  // whose logits are larger: queries and keys are four times as long
        const auto scale_weights = [&](double factor) {
          const torch::NoGradGuard no_grad;
          for (auto& [name, tensor] : stepper.model().parameters())
            if (name.ends_with("qkv.weight")) tensor.mul_(factor);
        };
        scale_weights(4.0);
        stepper.differentiate({batch()}, {.training = true});
        stepper.model().loss(batch().inputs, batch().targets, {.training = true});
        scale_weights(0.25);
      }
      stepper.step({batch()}, {.training = true}, no_learning, 1.0);
      return copies(stepper.model());
    };
    auto alone = after_a_step(false), after_another = after_a_step(true);
    for (auto& [name, tensor] : alone) EXPECT_TRUE(torch::equal(tensor, after_another.at(name))) << name;
  }
}

TEST(QkClip, LeavesSmallLogitsAlone) {
  const NormScheme scheme = find_scheme("qk-clip");
  Stepper stepper(DecoderLm(small(scheme, Kernels::fused), scheme, 11, 3), {});
  auto before = copies(stepper.model());
  stepper.step({batch()}, {.training = true}, no_learning, 1.0);
  for (auto& [name, tensor] : copies(stepper.model())) EXPECT_TRUE(torch::equal(tensor, before.at(name))) << name;
}

TEST(SigmaReparam, StartsAsThePlainModelAndKeepsItsSpectralNorms) {
  const NormScheme scheme = find_scheme("sigma-reparam"), none = find_scheme("none");
  const ModelConfig config = small(scheme, Kernels::fused);
  DecoderLm model(config, scheme, 11, 3), plain(config, none, 11, 3);
  EXPECT_TRUE(torch::allclose(model.logits(batch().inputs, {}), plain.logits(batch().inputs, {}), 1e-4, 1e-6));

  Stepper stepper(model, {});
  for (int step = 0; step < 20; ++step) stepper.step({batch()}, {.training = true, .step = step}, 1e-2, 1.0);
  auto state = copies(stepper.model());
  for (const char* map : {"layers.0.attn.qkv", "layers.1.mlp.out"}) {
    const std::string name = map;
    const Tensor weight = state.at(name + ".weight").to(torch::kFloat64);
    const Tensor u = state.at(name + ".u").to(torch::kFloat64), v = state.at(name + ".v").to(torch::kFloat64);
    Tensor x = torch::ones({weight.size(1)}, torch::kFloat64);
    for (int i = 0; i < 2000; ++i) x = torch::mv(weight.t(), torch::mv(weight, x)), x = x / x.norm();
    const double exact = torch::mv(weight, x).norm().item<double>();
    EXPECT_NEAR((u * torch::mv(weight, v)).sum().item<double>(), exact, 0.05 * exact) << name;
  }
}

TEST(SigmaReparam, TheVectorsOfThePowerIterationAreStateAndNotTrained) {
  const NormScheme scheme = find_scheme("sigma-reparam");
  DecoderLm model(small(scheme, Kernels::composite), scheme, 11, 3);
  EXPECT_EQ(model.state().size(), model.parameters().size() + 2 * 4 * 2);  // u and v, four maps, two layers
}

TEST(ZLoss, IsTheMeanSquareOfTheLogPartitionAndOfTrainingOnly) {
  NormScheme scheme = find_scheme("z-loss");
  scheme.z_loss = 0.1;
  for (const Kernels kernels : {Kernels::composite, Kernels::fused}) {
    const DecoderLm model(small(scheme, kernels), scheme, 11, 3);
    const torch::NoGradGuard no_grad;
    const Batch data = batch();
    const double trained = model.loss(data.inputs, data.targets, {.training = true}).item<double>(),
                 evaluated = model.loss(data.inputs, data.targets, {}).item<double>();
    const double expected = model.logits(data.inputs, {}).logsumexp(-1).square().mean().item<double>();
    EXPECT_NEAR(trained - evaluated, 0.1 * expected, 1e-5);
  }
}

TEST(FixNorm, TheLengthOfAnEmbeddingDoesNotMatter) {
  const NormScheme scheme = find_scheme("fixnorm");
  DecoderLm model(small(scheme, Kernels::fused), scheme, 11, 3);
  const torch::NoGradGuard no_grad;
  const Tensor before = model.logits(batch().inputs, {});
  for (auto& [name, tensor] : model.parameters())
    if (name == "embedding.weight") tensor.mul_(torch::linspace(0.5, 3.0, 11).view({11, 1}));
  EXPECT_TRUE(torch::allclose(model.logits(batch().inputs, {}), before, 1e-4, 1e-6));
}

TEST(EmbeddingScale, IsOfTheInputOnlyAndStartsAtTheRootOfTheWidth) {
  NormScheme scaled = find_scheme("none");
  scaled.embedding = EmbeddingNorm::scaled;
  ModelConfig config = small(scaled, Kernels::fused);
  config.tied_head = false;
  DecoderLm model(config, scaled, 11, 3), plain(config, find_scheme("none"), 11, 3);
  const torch::NoGradGuard no_grad;
  for (auto& [name, tensor] : plain.parameters())
    if (name == "embedding.weight") tensor.mul_(std::sqrt(double(config.d_model)));
  EXPECT_TRUE(torch::allclose(model.logits(batch().inputs, {}), plain.logits(batch().inputs, {}), 1e-5, 1e-6));
  EXPECT_EQ(model.parameters().size(), plain.parameters().size() + 1);
}

}  // namespace
}  // namespace normlab
