#include "normlab/probe/first_bad.h"

#include <gmock/gmock.h>

#include <limits>

namespace normlab {
namespace {

using torch::Tensor;

DecoderLm model(Kernels kernels) {
  const NormScheme& scheme = find_scheme("none");
  ModelConfig config;
  config.n_layers = 3, config.n_heads = 2, config.d_model = 16, config.seq_len = 8, config.bias = true;
  config.kernels = kernels;
  resolve_model(config, scheme);
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

TEST(FirstBad, NamesTheAttentionOfATranslator) {
  const NormScheme& scheme = find_scheme("none");
  torch::manual_seed(1);
  const Tensor text = torch::randint(0, 11, {2, 6}, torch::kInt64);
  TranslationBatch batch;
  batch.source = {text, torch::tensor({6, 4})};
  batch.inputs_bt = batch.labels_bt = text;
  batch.outputs = make_output_vocabulary(std::vector<bool>(11, true));
  const auto found_with = [&](const std::string& norm, const std::string& map, int64_t first) {
    EncoderDecoder translator(model(Kernels::fused).config(), scheme, {.vocab_size = 11, .encoder_layers = 2}, 3);
    const torch::NoGradGuard no_grad;
    for (auto& [name, tensor] : translator.parameters()) {
      if (name == norm) tensor.fill_(1e30);
      if (name == map) tensor.narrow(0, first, 8).fill_(3e38);
    }
    FirstBad finder(translator);
    const torch::AutoGradMode with_gradients(true);
    translator.loss_sum(batch, {.training = true, .observer = &finder}).backward();
    return finder.name();
  };
  EXPECT_EQ(found_with("", "", 0), "");
  // Heads have 8 rows; queries come first, then keys, then values; keys and values of the memory have a map of their
  // own.
  EXPECT_THAT(found_with("encoder.1.attn_norm.weight", "encoder.1.attn.qkv.weight", 24),
              testing::StartsWith("the keys of encoder layer 1, head 1 ("));
  EXPECT_THAT(found_with("decoder.2.attn_norm.weight", "decoder.2.attn.qkv.weight", 0),
              testing::StartsWith("the queries of decoder layer 2, head 0 ("));
  EXPECT_THAT(found_with("encoder_norm.weight", "decoder.0.cross.kv.weight", 24),
              testing::StartsWith("the values of cross-attention layer 0, head 1 ("));
}

}  // namespace
}  // namespace normlab
