#include "normlab/models/encoder_decoder.h"

#include <gtest/gtest.h>

#include <cmath>

#include "autograd_check.h"

namespace normlab {
namespace {

using torch::Tensor;

ModelConfig small() {
  ModelConfig config;
  config.n_layers = 2;
  config.n_heads = 2;
  config.d_model = 8;
  config.d_ff = 12;
  config.seq_len = 16;
  config.activation = Activation::relu;
  config.positions = Positions::sinusoidal;
  config.bias = true;
  config.init = InitRule::small;
  return config;
}

EncoderDecoder build(ModelConfig config, const NormScheme& scheme, torch::TensorOptions options = torch::kFloat64) {
  resolve_model(config, scheme);
  EncoderDecoder model(config, scheme,
                       {.vocab_size = 13, .encoder_layers = 1, .length_p975 = 9, .label_smoothing = 0.1}, 5, options);
  torch::manual_seed(2);
  const torch::NoGradGuard no_grad;
  for (auto& [name, tensor] : model.parameters()) tensor.add_(torch::randn_like(tensor), 0.3);
  return model;
}

// Two pairs of unequal lengths; subwords 4 and 5 are not of the target language.
TranslationBatch batch() {
  std::vector<bool> allowed(13, true);
  allowed[0] = allowed[1] = allowed[4] = allowed[5] = false;
  const OutputVocabulary outputs = make_output_vocabulary(allowed);
  const Tensor targets = torch::tensor({{7, 8, 9, 2}, {12, 2, 0, 0}}, torch::kInt64);
  const Tensor labels = outputs.place_v.index_select(0, targets.flatten()).view_as(targets);
  return {.source = {torch::tensor({{4, 5, 6, 11, 2}, {7, 4, 2, 0, 0}}, torch::kInt64),
                     torch::tensor({5, 3}, torch::kInt64)},
          .inputs_bt = torch::tensor({{1, 7, 8, 9}, {1, 12, 0, 0}}, torch::kInt64),
          .labels_bt = labels.masked_fill(targets.eq(0), -1),
          .outputs = outputs};
}

std::vector<NormScheme> schemes() {
  std::vector<NormScheme> list = catalogue();
  std::erase_if(list, [](const NormScheme& row) { return !why_no_translator(row).empty(); });
  NormScheme post = find_scheme("qknorm"), shared = find_scheme("qknorm"), learned = find_scheme("lp");
  post.placement = NormPlacement::post;
  post.embedding = EmbeddingNorm::fixnorm;
  shared.gain = GainSharing::model;
  learned.learn_p = true;
  for (const NormScheme& scheme : {post, shared, learned}) list.push_back(scheme);
  return list;
}

double largest(const Tensor& difference) { return difference.abs().max().item<double>(); }

TEST(EncoderDecoder, GradientsOfEveryScheme) {
  for (const NormScheme& scheme : schemes()) {
    SCOPED_TRACE(scheme.name);
    ModelConfig config = small();
    config.dropout = 0.2, config.mlp_dropout = 0.2;
    EncoderDecoder model = build(config, scheme);
    const Pass pass{.training = true, .seed = 1, .step = 2};
    model.loss_sum(batch(), pass).backward();
    const torch::NoGradGuard no_grad;
    for (auto& [name, tensor] : model.parameters()) {
      ASSERT_TRUE(tensor.grad().defined()) << name << " got no gradient";
      const Tensor gradient = tensor.grad().contiguous();
      auto* entry = tensor.data_ptr<double>();
      for (int64_t i = 0; i < tensor.numel(); i += std::max<int64_t>(1, tensor.numel() / 3)) {
        const double kept = entry[i], h = 1e-6;
        entry[i] = kept + h;
        const double above = model.loss_sum(batch(), pass).item<double>();
        entry[i] = kept - h;
        const double below = model.loss_sum(batch(), pass).item<double>();
        entry[i] = kept;
        const double analytic = gradient.data_ptr<double>()[i];
        ASSERT_NEAR(analytic, (above - below) / (2 * h), 2e-6 * (1.0 + std::abs(analytic))) << name << " " << i;
      }
    }
  }
}

TEST(EncoderDecoder, PaddingChangesNothing) {
  const EncoderDecoder model = build(small(), find_scheme("qknorm"));
  const TranslationBatch both = batch();
  const Tensor together = model.logits(both, Pass{});
  TranslationBatch alone = both.slice(1, 2);
  alone.source.tokens_bs = alone.source.tokens_bs.slice(1, 0, 3);
  alone.inputs_bt = alone.inputs_bt.slice(1, 0, 2), alone.labels_bt = alone.labels_bt.slice(1, 0, 2);
  EXPECT_LT(largest(model.logits(alone, Pass{})[0] - together[1].slice(0, 0, 2)), 1e-12);
}

TEST(EncoderDecoder, FusedKernelsGiveTheirGradientsToEveryCaller) {
  for (const NormScheme& scheme : schemes()) {
    SCOPED_TRACE(scheme.name);
    EncoderDecoder model = build(small(), scheme, torch::kFloat32);
    if (model.config().kernels != Kernels::fused) continue;
    const Pass pass{.training = true, .seed = 3, .step = 1};
    expect_gradients_for_every_caller(model.parameters(), [&] { return model.loss_sum(batch(), pass) * 0.375; });
  }
}

TEST(EncoderDecoder, FusedEqualsComposite) {
  for (const NormScheme& scheme : schemes()) {
    SCOPED_TRACE(scheme.name);
    ModelConfig config = small();
    if (!why_not_fused(config, scheme).empty()) continue;
    config.dropout = 0.2;
    config.kernels = Kernels::fused;
    EncoderDecoder fused = build(config, scheme, torch::kFloat32);
    config.kernels = Kernels::composite;
    EncoderDecoder composite = build(config, scheme, torch::kFloat32);
    const Pass pass{.training = true, .seed = 3, .step = 1};
    fused.loss_sum(batch(), pass).backward();
    composite.loss_sum(batch(), pass).backward();
    const auto a = fused.parameters(), b = composite.parameters();
    for (size_t i = 0; i < a.size(); ++i) {
      const Tensor expected = b[i].second.grad();
      // Rounding of float32 in sums of a few hundred products.
      EXPECT_LT(largest(a[i].second.grad() - expected), 1e-5 * (1.0 + largest(expected))) << a[i].first;
    }
  }
}

void expect_steps_of_the_whole_pass(const EncoderDecoder& model, double tolerance) {
  const torch::NoGradGuard no_grad;
  const TranslationBatch pairs = batch();
  const Tensor whole = model.logits(pairs, Pass{});
  const double size = std::max(1.0, largest(whole));
  model.pack_weights();
  const DecodeTables tables = model.decode_tables(pairs.outputs, pairs.target_language);
  BeamState state(model.encode(pairs.source, Pass{}), model.decoder_layers(), tables.plan);
  for (int64_t t = 0; t < 4; ++t) {
    // Two rows a sentence after the first step, the second of them a stranger that must not be read.
    Tensor tokens = pairs.inputs_bt.select(1, t);
    if (t > 0) tokens = torch::stack({tokens, torch::full_like(tokens, 6)}, 1).flatten();
    Tensor logits = model.step(tokens.contiguous(), tables, state);
    if (t > 0) logits = logits.view({2, 2, -1}).select(1, 0);
    EXPECT_LT(largest(logits - whole.select(1, t)), tolerance * size) << t;
    state.select(t == 0 ? std::vector<int64_t>{0, 0, 1, 1} : std::vector<int64_t>{0, 0, 2, 2});
  }
}

TEST(EncoderDecoder, StepsEqualTheWholePass) {
  for (const Positions positions : {Positions::sine, Positions::rope})
    for (const NormScheme& scheme : schemes()) {
      SCOPED_TRACE(scheme.name);
      ModelConfig config = small();
      config.positions = positions;
      config.kernels = Kernels::composite;
      expect_steps_of_the_whole_pass(build(config, scheme), 1e-12);
      if (!why_not_fused(config, scheme).empty()) continue;
      config.kernels = Kernels::fused;
      expect_steps_of_the_whole_pass(build(config, scheme, torch::kFloat32), 2e-5);
    }
}

TEST(EncoderDecoder, LossIsTheSmoothedSumOverWords) {
  const EncoderDecoder model = build(small(), find_scheme("none"));
  const TranslationBatch pairs = batch();
  const Tensor log_probs = model.logits(pairs, Pass{}).log_softmax(-1).flatten(0, 1);
  const Tensor labels = pairs.labels_bt.flatten();
  double nll = 0.0, uniform = 0.0;
  for (int64_t i = 0; i < labels.size(0); ++i) {
    if (labels[i].item<int64_t>() < 0) continue;
    nll -= log_probs[i][labels[i].item<int64_t>()].item<double>();
    uniform -= log_probs[i].mean().item<double>();
  }
  EXPECT_EQ(pairs.words(), 6);
  EXPECT_NEAR(model.loss_sum(pairs, Pass{}).item<double>(), nll, 1e-9);
  EXPECT_NEAR(model.loss_sum(pairs, Pass{}, 0.1).item<double>(), 0.9 * nll + 0.1 * uniform, 1e-9);
}

TEST(EncoderDecoder, SmallInitFollowsItsTable) {
  ModelConfig config = small();
  config.d_model = 128, config.d_ff = 256;
  NormScheme scheme = find_scheme("qknorm");
  scheme.embedding = EmbeddingNorm::fixnorm;
  resolve_model(config, scheme);
  EncoderDecoder model(config, scheme, {.vocab_size = 500, .encoder_layers = 2, .length_p975 = 72}, 1);
  for (auto& [name, tensor] : model.parameters()) {
    double expected = std::sqrt(2.0 / (5 * 128));
    if (name.find(".mlp.") != std::string::npos) expected = std::sqrt(2.0 / (128 + 256));
    if (name == "embedding.weight") expected = 0.01 / std::sqrt(3.0);
    if (name.ends_with("qk_gain")) {
      EXPECT_NEAR(tensor.item<double>(), std::log2(72.0 * 72 - 72), 1e-5);
    }
    if (tensor.dim() < 2 || name == "languages.weight") continue;
    EXPECT_NEAR(tensor.std().item<double>(), expected, 0.04 * expected) << name;
  }
}

}  // namespace
}  // namespace normlab
