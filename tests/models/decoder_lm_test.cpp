#include "normlab/models/decoder_lm.h"

#include <gmock/gmock.h>

#include "autograd_check.h"
#include "gradient_check.h"
#include "normlab/base/error.h"
#include "recommended.h"

namespace normlab {
namespace {

using torch::Tensor;

ModelConfig small() {
  ModelConfig config;
  config.n_layers = 2;
  config.n_heads = 2;
  config.d_model = 8;
  config.seq_len = 6;
  return config;
}

DecoderLm build(ModelConfig config, const NormScheme& scheme, torch::TensorOptions options = torch::kFloat64) {
  config = with_recommended(config, scheme);
  resolve_model(config, scheme);
  return DecoderLm(config, scheme, 11, 5, options);
}

Tensor tokens() { return torch::tensor({{1, 2, 3, 4, 5, 6}, {10, 9, 8, 0, 7, 1}}, torch::kInt64); }

// Every parameter entry of a model against central differences.
void expect_model_gradients(DecoderLm& model) {
  const Tensor inputs = tokens(), targets = inputs.flip(1);
  const Pass pass{.training = true, .seed = 1, .step = 2};
  model.loss(inputs, targets, pass).backward();
  torch::NoGradGuard no_grad;
  for (auto& [name, tensor] : model.parameters()) {
    ASSERT_TRUE(tensor.grad().defined()) << name << " got no gradient";
    const Tensor gradient = tensor.grad().contiguous();
    auto* entry = tensor.data_ptr<double>();
    const int64_t stride = std::max<int64_t>(1, tensor.numel() / 7);
    for (int64_t i = 0; i < tensor.numel(); i += stride) {
      const double kept = entry[i], h = 1e-6;
      entry[i] = kept + h;
      const double above = model.loss(inputs, targets, pass).item<double>();
      entry[i] = kept - h;
      const double below = model.loss(inputs, targets, pass).item<double>();
      entry[i] = kept;
      const double analytic = gradient.data_ptr<double>()[i];
      ASSERT_NEAR(analytic, (above - below) / (2 * h), 1e-6 * (1.0 + std::abs(analytic))) << name << " " << i;
    }
  }
}

void randomise(DecoderLm& model) {
  torch::manual_seed(2);
  torch::NoGradGuard no_grad;
  for (auto& [name, tensor] : model.parameters()) tensor.add_(torch::randn_like(tensor), 0.3);
}

TEST(DecoderLm, GradientsOfEveryShape) {
  std::vector<ModelConfig> shapes(7, small());
  shapes[1].activation = Activation::swiglu;
  shapes[1].positions = Positions::rope;
  shapes[1].tied_head = false;
  shapes[2].activation = Activation::relu;
  shapes[2].positions = Positions::sinusoidal;
  shapes[2].bias = true;
  shapes[3].n_kv_heads = 1;
  shapes[3].d_head = 6;
  shapes[4].dropout = 0.3;
  shapes[5].d_ff = 13;
  shapes[6].window = 2;
  shapes[6].global_every = 2;
  for (const ModelConfig& shape : shapes) {
    DecoderLm model = build(shape, find_scheme("lp"));
    randomise(model);
    expect_model_gradients(model);
  }
}

TEST(DecoderLm, GradientsOfEveryScheme) {
  std::vector<NormScheme> schemes = catalogue();
  for (GainSharing gain : {GainSharing::model, GainSharing::head, GainSharing::channel}) {
    NormScheme scheme = find_scheme("lp");
    scheme.gain = gain;
    schemes.push_back(scheme);
  }
  NormScheme rms = find_scheme("none"), post = find_scheme("none"), learned = find_scheme("lp");
  rms.sublayer = SublayerNorm::rms;
  post.placement = NormPlacement::post;
  learned.learn_p = true;
  learned.p_sharing = PSharing::head;
  NormScheme branch = find_scheme("dyt"), scalar_alpha = find_scheme("angpt"), lerp = find_scheme("angpt");
  branch.placement = NormPlacement::branch;
  scalar_alpha.alpha_sharing = AlphaSharing::layer;
  lerp.residual = Residual::lerp;
  NormScheme own = find_scheme("layernorm"), unnormalised = find_scheme("angpt");
  own.qk_affine = QkAffine::own;
  own.gain = GainSharing::channel;
  unnormalised.qk = QkNorm::none;
  NormScheme gemma = find_scheme("rms");
  gemma.sublayer = SublayerNorm::rms;
  gemma.placement = NormPlacement::both;
  gemma.embedding = EmbeddingNorm::sqrt_d;
  for (const NormScheme& scheme : {rms, post, learned, branch, scalar_alpha, lerp, own, unnormalised, gemma})
    schemes.push_back(scheme);
  for (const NormScheme& scheme : schemes) {
    SCOPED_TRACE(scheme.name);
    DecoderLm model = build(small(), scheme);
    randomise(model);
    expect_model_gradients(model);
  }
}

TEST(DecoderLm, P2OfLpIsQknormBitForBit) {
  NormScheme lp = find_scheme("lp");
  lp.p = 2.0;
  const Tensor a = build(small(), lp, torch::kFloat32).logits(tokens(), Pass{});
  const Tensor b = build(small(), find_scheme("qknorm"), torch::kFloat32).logits(tokens(), Pass{});
  EXPECT_TRUE(torch::equal(a, b));
}

TEST(DecoderLm, SchemesStartFromTheSameWeights) {
  DecoderLm none = build(small(), find_scheme("none")), lp = build(small(), find_scheme("lp"));
  std::map<std::string, Tensor> theirs;
  for (auto& [name, tensor] : lp.parameters()) theirs.emplace(name, tensor);
  for (auto& [name, tensor] : none.parameters()) EXPECT_TRUE(torch::equal(tensor, theirs.at(name))) << name;
}

TEST(DecoderLm, FixedGainIsNotAParameter) {
  NormScheme scheme = find_scheme("qknorm");
  const size_t learned = build(small(), scheme).parameters().size();
  scheme.learn_gain = false;
  EXPECT_EQ(build(small(), scheme).parameters().size(), learned - 2);  // one a layer
}

TEST(DecoderLm, NanogptShapeHasItsParameterCount) {
  ModelConfig config;  // the defaults are nanoGPT's character model
  DecoderLm model = build(config, find_scheme("none"), torch::TensorOptions().device(torch::kMeta));
  int64_t count = 0;
  for (auto& [name, tensor] : model.parameters()) count += tensor.numel();
  // the test vocabulary has 11 symbols, Tiny Shakespeare 65
  EXPECT_EQ(count + (65 - 11) * 384, 10745088);
}

TEST(DecoderLm, InitialisationFollowsItsTable) {
  ModelConfig config;
  config.d_model = 192;
  for (InitRule rule : {InitRule::nanogpt, InitRule::gpt2}) {
    config.init = rule;
    DecoderLm model = build(config, find_scheme("none"), torch::kFloat32);
    for (auto& [name, tensor] : model.parameters()) {
      double expected = 0.02;
      if (tensor.dim() < 2) continue;
      if (name.ends_with(".out.weight")) expected /= std::sqrt(12.0);
      if (name == "positions.weight" && rule == InitRule::gpt2) expected = 0.01;
      EXPECT_NEAR(tensor.std().item<double>(), expected, 0.04 * expected) << name;
    }
  }
}

void expect_cached_decoding(const ModelConfig& config, const NormScheme& scheme) {
  DecoderLm model = build(config, scheme);
  randomise(model);
  torch::NoGradGuard no_grad;
  const Tensor whole = model.logits(tokens(), Pass{});
  const double size = std::max(1.0, whole.abs().max().item<double>());
  std::vector<KvCache> caches(2);
  const Tensor prefill = model.logits(tokens().slice(1, 0, 3), Pass{}, &caches);
  EXPECT_LT((prefill - whole.slice(1, 0, 3)).abs().max().item<double>(), 1e-12 * size);
  for (int64_t t = 3; t < 6; ++t) {
    const Tensor step = model.logits(tokens().slice(1, t, t + 1), Pass{}, &caches);
    EXPECT_LT((step - whole.slice(1, t, t + 1)).abs().max().item<double>(), 1e-12 * size) << t;
  }
}

TEST(DecoderLm, CachedDecodingEqualsTheWholePass) {
  for (const NormScheme& scheme : catalogue()) {
    SCOPED_TRACE(scheme.name);
    expect_cached_decoding(small(), scheme);
  }
  ModelConfig config = small();
  config.positions = Positions::rope;
  config.n_kv_heads = 1;
  for (const char* name : {"lp", "rms", "olmo2"}) expect_cached_decoding(config, find_scheme(name));
  config.window = 2;
  for (const int global_every : {0, 2}) {
    config.global_every = global_every;
    expect_cached_decoding(config, find_scheme("lp"));
  }
}

// Which of the six positions notice that the first token is another one.
std::vector<bool> positions_that_notice(const ModelConfig& config, torch::ScalarType type) {
  const torch::NoGradGuard no_grad;
  DecoderLm model = build(config, find_scheme("lp"), type);
  randomise(model);
  Tensor other = tokens();
  other.index_put_({0, 0}, 9);
  const Tensor difference = (model.logits(tokens(), Pass{}) - model.logits(other, Pass{}))[0].abs().amax(-1);
  std::vector<bool> noticed;
  for (int64_t t = 0; t < 6; ++t) noticed.push_back(difference[t].item<double>() > 0.0);
  return noticed;
}

TEST(DecoderLm, AWindowEndsWhatALayerSees) {
  for (const auto type : {torch::kFloat64, torch::kFloat32}) {  // composite and fused
    ModelConfig config = small();
    config.window = 2;  // two layers: the token itself and, by way of another, two more
    EXPECT_EQ(positions_that_notice(config, type), (std::vector<bool>{true, true, true, false, false, false}));
    config.n_layers = 1;
    EXPECT_EQ(positions_that_notice(config, type), (std::vector<bool>{true, true, false, false, false, false}));
    config.n_layers = 2;
    config.global_every = 2;
    EXPECT_EQ(positions_that_notice(config, type), std::vector<bool>(6, true));
    config.n_layers = 1;  // the first layer is not the global one
    EXPECT_EQ(positions_that_notice(config, type), (std::vector<bool>{true, true, false, false, false, false}));
  }
}

// The fused kernels in float against the composite operators in double, with every tensor away from its start.
TEST(DecoderLm, FusedKernelsServeEverySchemeThatTheyClaim) {
  for (const NormScheme& scheme : catalogue())
    for (int n_kv_heads : {2, 1}) {
      SCOPED_TRACE(scheme.name);
      ModelConfig config = with_recommended(small(), scheme);
      config.n_kv_heads = n_kv_heads;
      config.dropout = 0.1;
      resolve_model(config, scheme);
      if (config.kernels != Kernels::fused) continue;
      DecoderLm fused(config, scheme, 11, 5, torch::kFloat32), exact(config, scheme, 11, 5, torch::kFloat64);
      randomise(exact);
      const auto from = exact.state(), to = fused.state();
      const Pass pass{.training = true, .seed = 1, .step = 2};
      {
        torch::NoGradGuard no_grad;
        for (size_t i = 0; i < to.size(); ++i) to[i].second.copy_(from[i].second);
        for (size_t i = 0; i < to.size(); ++i) from[i].second.copy_(to[i].second);
      }
      const Tensor a = fused.loss(tokens(), tokens().flip(1), pass), b = exact.loss(tokens(), tokens().flip(1), pass);
      EXPECT_NEAR(a.item<double>(), b.item<double>(), 1e-5 * std::max(1.0, std::abs(b.item<double>())));
      a.backward(), b.backward();
      const auto got = fused.parameters(), expected = exact.parameters();
      for (size_t i = 0; i < got.size(); ++i) {
        const Tensor truth = expected[i].second.grad();
        const double error = (got[i].second.grad().to(torch::kFloat64) - truth).abs().max().item<double>();
        EXPECT_LT(error, 2e-5 * (1.0 + truth.abs().max().item<double>())) << got[i].first;
      }
    }
}

TEST(DecoderLm, FusedKernelsGiveTheSameBitsWithoutGradients) {
  for (const NormScheme& scheme : catalogue()) {
    SCOPED_TRACE(scheme.name);
    ModelConfig config = small();
    config.bias = scheme.placement == NormPlacement::pre && scheme.residual == Residual::add;
    DecoderLm model = build(config, scheme, torch::kFloat32);
    if (model.config().kernels != Kernels::fused) continue;
    randomise(model);
    model.pack_weights();
    const Tensor with = model.logits(tokens(), Pass{});
    const torch::NoGradGuard no_grad;
    EXPECT_TRUE(torch::equal(model.logits(tokens(), Pass{}), with));
  }
}

TEST(DecoderLm, FusedKernelsGiveTheirGradientsToEveryCaller) {
  for (const NormScheme& scheme : catalogue()) {
    SCOPED_TRACE(scheme.name);
    DecoderLm model = build(small(), scheme, torch::kFloat32);
    if (model.config().kernels != Kernels::fused) continue;
    randomise(model);
    const Pass pass{.training = true, .seed = 1, .step = 2};
    expect_gradients_for_every_caller(model.parameters(),
                                      [&] { return model.loss(tokens(), tokens().flip(1), pass) * 0.375; });
  }
}

TEST(DecoderLm, AliasSharesStorageButNotGradients) {
  DecoderLm model = build(small(), find_scheme("qknorm"));
  DecoderLm alias = model.alias();
  alias.loss(tokens(), tokens(), Pass{}).backward();
  const auto a = model.parameters(), b = alias.parameters();
  for (size_t i = 0; i < a.size(); ++i) {
    EXPECT_EQ(a[i].second.data_ptr(), b[i].second.data_ptr());
    EXPECT_FALSE(a[i].second.grad().defined());
    EXPECT_TRUE(b[i].second.grad().defined()) << b[i].first;
  }
}

TEST(DecoderLm, RefusesMoreTokensThanItsWindow) {
  const DecoderLm model = build(small(), find_scheme("none"));
  EXPECT_THAT(
      [&] {
        model.logits(torch::zeros({1, 7}, torch::kInt64), Pass{});
      },
      testing::ThrowsMessage<Error>("[model] got 7 tokens, expected at most model.seq_len = 6."));
}

}  // namespace
}  // namespace normlab
