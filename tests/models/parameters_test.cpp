#include "normlab/config/parameters.h"

#include <gtest/gtest.h>

#include "normlab/models/decoder_lm.h"

namespace normlab {
namespace {

std::vector<ParameterSpec> specs_of_tensors(DecoderLm model) {
  std::vector<ParameterSpec> list;
  model.visit([&](const std::string& name, torch::Tensor& tensor, Role role) {
    if (role == Role::state) return;
    const torch::Tensor flat = tensor.detach().flatten().to(torch::kFloat64);
    const bool constant = (flat == flat[0]).all().item<bool>();
    list.push_back({name, tensor.sizes().vec(), role, constant ? std::optional(flat[0].item<double>()) : std::nullopt});
  });
  return list;
}

void expect_same(ModelConfig config, const NormScheme& scheme) {
  SCOPED_TRACE(scheme.name);
  resolve_model(config, scheme);
  const std::vector<ParameterSpec> got = parameters_of(config, scheme, 11);
  const std::vector<ParameterSpec> expected = specs_of_tensors(DecoderLm(config, scheme, 11, /*seed=*/1));
  ASSERT_EQ(got.size(), expected.size());
  for (size_t i = 0; i < got.size(); ++i) {
    EXPECT_EQ(got[i].name, expected[i].name);
    EXPECT_EQ(got[i].shape, expected[i].shape) << got[i].name;
    EXPECT_EQ(got[i].role, expected[i].role) << got[i].name;
    if (!got[i].start) continue;
    ASSERT_TRUE(expected[i].start) << got[i].name;
    EXPECT_FLOAT_EQ(static_cast<float>(*got[i].start), static_cast<float>(*expected[i].start)) << got[i].name;
  }
}

TEST(Parameters, AreThoseOfTheRealModelForEveryScheme) {
  for (const NormScheme& scheme : catalogue())
    for (const bool changed : {false, true}) {
      ModelConfig config{.n_layers = 2, .n_heads = 2, .d_model = 16, .seq_len = 8};
      config.bias = changed;
      config.tied_head = !changed;
      config.n_kv_heads = changed ? 1 : 2;
      config.activation = changed ? Activation::swiglu : Activation::gelu;
      if (changed || scheme.residual != Residual::add) config.positions = Positions::rope;
      expect_same(config, scheme);
    }
}

TEST(Parameters, FollowTheAnswersOfAScheme) {
  const ModelConfig config{.n_layers = 3, .n_heads = 2, .d_model = 16, .seq_len = 8};
  NormScheme scheme = find_scheme("lp");
  for (const GainSharing sharing : {GainSharing::model, GainSharing::layer, GainSharing::head, GainSharing::channel}) {
    scheme.gain = sharing;
    expect_same(config, scheme);
  }
  scheme.learn_gain = false;
  scheme.learn_p = true;
  scheme.p_sharing = PSharing::head;
  scheme.placement = NormPlacement::post;
  expect_same(config, scheme);
  scheme.placement = NormPlacement::both;
  expect_same(config, scheme);
  ModelConfig gated = config;
  gated.activation = Activation::geglu;
  expect_same(gated, scheme);
}

TEST(ParameterCount, LeavesOutWhatIsAroundTheBlocks) {
  for (const NormScheme& scheme : catalogue()) {
    ModelConfig config{.n_layers = 2, .n_heads = 2, .d_model = 16, .seq_len = 8};
    config.positions = Positions::rope;
    resolve_model(config, scheme);
    const ParameterCount few = count_parameters(config, scheme, 11), more = count_parameters(config, scheme, 12);
    EXPECT_EQ(few.body, more.body);
    EXPECT_EQ(few.total, few.body + 11 * (more.total - few.total)) << scheme.name;
  }
}

TEST(ParameterCount, ABillionParametersTakeNoMemory) {
  ModelConfig config{.n_layers = 25, .n_heads = 25, .d_model = 1600, .seq_len = 2048};
  resolve_model(config, find_scheme("none"));
  const ParameterCount count = count_parameters(config, find_scheme("none"), 50257);
  EXPECT_EQ(count.body, 12LL * 25 * 1600 * 1600 + 51 * 1600);
  EXPECT_EQ(count.total, count.body + (50257LL + 2048) * 1600);
}

}  // namespace
}  // namespace normlab
