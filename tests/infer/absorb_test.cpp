// Absorption leaves the logits as they are, to 1e-10 in double, and says what it cannot absorb.
#include "normlab/infer/absorb.h"

#include <gmock/gmock.h>

#include "normlab/base/error.h"
#include "recommended.h"

namespace normlab {
namespace {

using testing::HasSubstr;
using torch::Tensor;

DecoderLm model_of(const NormScheme& scheme, const std::function<void(ModelConfig&)>& change = {}) {
  ModelConfig config = with_recommended({}, scheme);
  config.n_layers = 3;
  config.n_heads = 4;
  config.d_model = 16;
  config.seq_len = 8;
  if (change) change(config);
  resolve_model(config, scheme);
  DecoderLm model(config, scheme, 13, 5, torch::kFloat64);
  torch::manual_seed(6);
  const torch::NoGradGuard no_grad;
  for (auto& [name, tensor] : model.parameters()) tensor.add_(torch::randn_like(tensor), 0.1);
  return model;
}

Tensor tokens() { return torch::tensor({{1, 2, 3, 4, 5, 6, 12, 0}, {10, 9, 8, 0, 7, 1, 1, 1}}, torch::kInt64); }

Absorbed expect_same_logits(DecoderLm model) {
  const torch::NoGradGuard no_grad;
  const Absorbed absorbed = absorb(model);
  const DecoderLm plain = absorbed_model(absorbed, 13, torch::kFloat64);
  const Tensor expected = model.logits(tokens(), Pass{}), got = plain.logits(tokens(), Pass{});
  EXPECT_LT((got - expected).abs().max().item<double>(), 1e-10 * expected.abs().max().item<double>());
  return absorbed;
}

TEST(Absorb, AngptBecomesAPlainTransformer) {
  for (const Activation activation : {Activation::swiglu, Activation::gelu})
    for (const bool bias : {false, true}) {
      const Absorbed absorbed = expect_same_logits(model_of(find_scheme("angpt"), [&](ModelConfig& config) {
        config.activation = activation;
        config.bias = bias;
        config.n_kv_heads = 2;
      }));
      EXPECT_TRUE(absorbed.kept.empty());
      EXPECT_EQ(absorbed.scheme.residual, Residual::add);
      EXPECT_EQ(absorbed.scheme.map_scale, MapScale::none);
      EXPECT_EQ(absorbed.scheme.qk, QkNorm::rms);
      EXPECT_EQ(absorbed.scheme.qk_affine, QkAffine::own);  // s_qk has a gain for each channel of each head
      for (const auto& [name, tensor] : absorbed.tensors)
        EXPECT_FALSE(name.ends_with("alpha_attn") || name.ends_with("alpha_mlp") || name == "s_z") << name;
    }
}

TEST(Absorb, AngptWithATiedHeadAndOtherChoices) {
  NormScheme scheme = find_scheme("angpt");
  expect_same_logits(model_of(scheme, [](ModelConfig& config) { config.tied_head = true; }));
  scheme.alpha_sharing = AlphaSharing::layer;
  scheme.qk = QkNorm::none;
  expect_same_logits(model_of(scheme));
  scheme.residual = Residual::lerp;
  expect_same_logits(model_of(scheme));
}

TEST(Absorb, NgptKeepsItsSphere) {
  const Absorbed absorbed = expect_same_logits(model_of(find_scheme("ngpt")));
  ASSERT_EQ(absorbed.kept.size(), 1U);
  EXPECT_THAT(absorbed.kept.front(), HasSubstr("alpha"));
  EXPECT_EQ(absorbed.scheme.residual, Residual::lerp_unit);
  EXPECT_EQ(absorbed.scheme.gain, GainSharing::none);
  EXPECT_EQ(absorbed.scheme.output_scale, OutputScale::none);
}

TEST(Absorb, GainsOfL2NormsBecomeThoseOfAnRmsNorm) {
  for (const GainSharing sharing : {GainSharing::model, GainSharing::layer, GainSharing::head, GainSharing::channel})
    for (const bool learned : {true, false}) {
      NormScheme scheme = find_scheme("qknorm");
      scheme.gain = sharing;
      scheme.learn_gain = learned;
      const Absorbed absorbed = expect_same_logits(model_of(scheme));
      EXPECT_EQ(absorbed.scheme.qk, QkNorm::rms);
      EXPECT_EQ(absorbed.scheme.logit_scale.text(), "1/sqrt(d_head)");
    }
  expect_same_logits(model_of(find_scheme("cosine")));
}

TEST(Absorb, TheRest) {
  for (const char* name : {"ssmax", "sigma-reparam", "fixnorm", "dyt", "ln-scaling"}) {
    SCOPED_TRACE(name);
    EXPECT_TRUE(expect_same_logits(model_of(find_scheme(name))).kept.empty());
  }
}

TEST(Absorb, RefusesWhatIsNotExact) {
  const auto refuses = [](const NormScheme& scheme, const char* reason) {
    DecoderLm model = model_of(scheme, [](ModelConfig& config) { config.positions = Positions::rope; });
    EXPECT_THAT([&] { absorb(model); }, testing::ThrowsMessage<UsageError>(HasSubstr(reason))) << scheme.name;
  };
  refuses(find_scheme("none"), "nothing that can be absorbed");
  refuses(find_scheme("rms"), "nothing that can be absorbed");
  refuses(find_scheme("lp"), "only an l2 norm");
  NormScheme rotated = find_scheme("ssmax");
  rotated.gain = GainSharing::channel;
  rotated.order = QkOrder::after_rope;
  refuses(rotated, "rotation");
}

TEST(Absorb, RefusesAnAlphaOfOne) {
  DecoderLm model = model_of(find_scheme("angpt"));
  const torch::NoGradGuard no_grad;
  for (auto& [name, tensor] : model.parameters())
    if (name.ends_with("alpha_mlp")) tensor.fill_(0.25 * 3);  // stored 1/sqrt(16) stands for 1/n_layers
  EXPECT_THAT([&] { absorb(model); }, testing::ThrowsMessage<UsageError>(HasSubstr("alpha_mlp")));
}

}  // namespace
}  // namespace normlab
