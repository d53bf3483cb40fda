#include "normlab/models/beam_search.h"

#include <gtest/gtest.h>

namespace normlab {
namespace {

using torch::Tensor;

constexpr int vocab = 40;

EncoderDecoder build(const std::string& scheme_name, Kernels kernels) {
  ModelConfig config;
  config.n_layers = 2, config.n_heads = 2, config.d_model = 32, config.d_ff = 48, config.seq_len = 64;
  config.activation = Activation::relu;
  config.positions = Positions::sinusoidal;
  config.bias = true;
  config.kernels = kernels;
  NormScheme scheme = find_scheme(scheme_name);
  resolve_model(config, scheme);
  EncoderDecoder model(config, scheme, {.vocab_size = vocab, .encoder_layers = 2, .length_p975 = 9}, 5);
  torch::manual_seed(4);
  const torch::NoGradGuard no_grad;
  for (auto& [name, tensor] : model.parameters()) tensor.add_(torch::randn_like(tensor), 0.2);
  return model;
}

// Sentences of 2 to 11 tokens.
BeamTask task(int64_t sentences) {
  torch::manual_seed(9);
  const Tensor tokens = torch::randint(4, vocab, {sentences, 11}, torch::kInt64);
  const Tensor lengths = torch::arange(sentences, torch::kInt64).remainder(10) + 2;
  std::vector<bool> allowed(vocab, true);
  allowed[0] = allowed[1] = false;
  BeamTask out{.source = {tokens, lengths}, .outputs = make_output_vocabulary(allowed), .limits = {}};
  for (int64_t i = 0; i < sentences; ++i) out.limits.push_back(lengths[i].item<int64_t>() + 8);
  return out;
}

BeamTask only(const BeamTask& all, int64_t sentence) {
  BeamTask one = all;
  const int64_t length = all.source.lengths_b[sentence].item<int64_t>();
  one.source.tokens_bs = all.source.tokens_bs.slice(0, sentence, sentence + 1).slice(1, 0, length).contiguous();
  one.source.lengths_b = all.source.lengths_b.slice(0, sentence, sentence + 1).contiguous();
  one.limits = {all.limits[static_cast<size_t>(sentence)]};
  return one;
}

TEST(BeamSearch, BitsDoNotDependOnTheBatch) {
  for (const char* scheme : {"none", "qknorm", "lp", "fixnorm"}) {
    const EncoderDecoder model = build(scheme, Kernels::fused);
    const BeamTask all = task(13);
    const auto together = beam_search(model, all, {});
    for (int64_t i = 0; i < 13; ++i) {
      const auto alone = beam_search(model, only(all, i), {});
      for (size_t k = 0; k < 4; ++k) {
        EXPECT_EQ(alone[0][k].symbols, together[static_cast<size_t>(i)][k].symbols) << scheme << " " << i;
        EXPECT_EQ(alone[0][k].score, together[static_cast<size_t>(i)][k].score) << scheme << " " << i;
      }
    }
  }
}

TEST(BeamSearch, CompositeFindsTheSame) {
  const BeamTask all = task(5);
  const auto fused = beam_search(build("qknorm", Kernels::fused), all, {});
  const auto composite = beam_search(build("qknorm", Kernels::composite), all, {});
  for (size_t i = 0; i < 5; ++i)
    for (size_t k = 0; k < 4; ++k) {
      EXPECT_EQ(fused[i][k].symbols, composite[i][k].symbols);
      EXPECT_NEAR(fused[i][k].score, composite[i][k].score, 1e-4);  // float32 sums over some fifteen symbols
    }
}

TEST(BeamSearch, ScoresAreThoseOfTheWholePass) {
  const EncoderDecoder model = build("qknorm", Kernels::composite);
  const BeamTask one = only(task(3), 2);
  const torch::NoGradGuard no_grad;
  for (const double alpha : {0.0, 0.6}) {
    double before = 1e9;
    const auto all = beam_search(model, one, {.beam = 4, .length_penalty = alpha});
    for (const Hypothesis& found : all[0]) {
      const auto n = static_cast<int64_t>(found.symbols.size());
      std::vector<int64_t> inputs = {1};
      inputs.insert(inputs.end(), found.symbols.begin(), found.symbols.end() - 1);
      const TranslationBatch batch{.source = one.source,
                                   .inputs_bt = torch::tensor(inputs, torch::kInt64).view({1, n}),
                                   .labels_bt = {},
                                   .outputs = one.outputs};
      const Tensor log_probs = model.logits(batch, Pass{})[0].log_softmax(-1);
      double total = 0.0;
      for (int64_t t = 0; t < n; ++t) {
        const int64_t symbol = found.symbols[static_cast<size_t>(t)];
        total += log_probs[t][one.outputs.place_v[symbol].item<int64_t>()].item<double>();
      }
      EXPECT_NEAR(found.score, total / std::pow((5.0 + static_cast<double>(n)) / 6.0, alpha), 1e-4);
      EXPECT_LE(found.score, before);
      EXPECT_TRUE(n == one.limits[0] || found.symbols.back() == 2);
      before = found.score;
    }
  }
}

TEST(BeamSearch, OneHypothesisIsTheGreedyOne) {
  const EncoderDecoder model = build("none", Kernels::composite);
  const BeamTask one = only(task(3), 1);
  const torch::NoGradGuard no_grad;
  const Hypothesis found = beam_search(model, one, {.beam = 1})[0][0];
  std::vector<int64_t> inputs = {1};
  for (size_t t = 0; t < found.symbols.size(); ++t) {
    const auto n = static_cast<int64_t>(inputs.size());
    const TranslationBatch batch{.source = one.source,
                                 .inputs_bt = torch::tensor(inputs, torch::kInt64).view({1, n}),
                                 .labels_bt = {},
                                 .outputs = one.outputs};
    Tensor last = model.logits(batch, Pass{})[0][-1];
    if (t == 0) last[one.outputs.place_v[2].item<int64_t>()] = -1e30;  // the first symbol is not the end
    EXPECT_EQ(found.symbols[t], one.outputs.ids_n[last.argmax().item<int64_t>()].item<int64_t>());
    inputs.push_back(found.symbols[t]);
  }
}

}  // namespace
}  // namespace normlab
