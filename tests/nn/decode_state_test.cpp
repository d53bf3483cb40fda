// Decoding by the fused kernels against whole passes by PyTorch's operators, for every scheme and instruction set.
#include "normlab/nn/decode_state.h"

#include <ATen/Parallel.h>
#include <gmock/gmock.h>

#include "kernels/every_target.h"
#include "normlab/base/error.h"
#include "normlab/models/decoder_lm.h"
#include "recommended.h"

namespace normlab {
namespace {

using torch::Tensor;

constexpr int vocab = 11;
constexpr int64_t length = 9;

ModelConfig small(Positions positions) {
  ModelConfig config;
  config.n_layers = 2, config.n_heads = 2, config.d_model = 12, config.d_ff = 20, config.seq_len = length;
  config.positions = positions;
  return config;
}

Tensor texts(int64_t n) {
  torch::manual_seed(3);
  return torch::randint(vocab, {n, length}, torch::kInt64);
}

std::vector<int64_t> piece(const Tensor& texts_bt, int64_t first, int64_t count) {
  const Tensor part = texts_bt.slice(1, first, first + count).contiguous();
  return {part.const_data_ptr<int64_t>(), part.const_data_ptr<int64_t>() + part.numel()};
}

// In pieces of these many tokens: the logits after each piece, [pieces, texts, v].
Tensor decoded(const std::shared_ptr<const DecodePlan>& plan, const Tensor& texts_bt,
               const std::vector<int64_t>& pieces) {
  DecodeState state(plan, static_cast<size_t>(texts_bt.size(0)));
  std::vector<Tensor> out;
  int64_t first = 0;
  for (const int64_t count : pieces) {
    const std::vector<int64_t> counts(state.texts(), count);
    out.push_back(state.read(piece(texts_bt, first, count), counts).clone());
    first += count;
  }
  return torch::stack(out);
}

// The rows of the catalogue, and what none of them has.
std::vector<NormScheme> schemes() {
  std::vector<NormScheme> list = catalogue();
  NormScheme gemma = find_scheme("rms"), post = find_scheme("qknorm"), branch = find_scheme("lp"),
             own = find_scheme("rms");
  gemma.sublayer = SublayerNorm::rms, gemma.placement = NormPlacement::both, gemma.embedding = EmbeddingNorm::sqrt_d;
  post.placement = NormPlacement::post;
  branch.placement = NormPlacement::branch;
  own.qk_affine = QkAffine::own;
  for (NormScheme* scheme : {&gemma, &post, &branch, &own}) list.push_back(*scheme);
  return list;
}

// Calls test(fused model in float, the same model in double) for every scheme that has fused kernels, with tensors away
// from their start.
template <class Test>
void for_every_scheme(const Test& test) {
  for (const NormScheme& scheme : schemes())
    for (const Positions positions : {Positions::learned, Positions::rope}) {
      if (scheme.residual != Residual::add && positions != Positions::rope) continue;  // refused
      for (const bool grouped : {false, true}) {
        SCOPED_TRACE(scheme.name);
        ModelConfig config = with_recommended(small(positions), scheme);
        config.positions = positions;
        config.n_kv_heads = grouped ? 1 : 2;
        config.window = grouped ? 4 : 0, config.global_every = grouped ? 2 : 0;  // the second layer sees all keys
        config.bias = scheme.residual == Residual::add;
        resolve_model(config, scheme);
        if (config.kernels != Kernels::fused) continue;
        DecoderLm fused(config, scheme, vocab, 5, torch::kFloat32), exact(config, scheme, vocab, 5, torch::kFloat64);
        const torch::NoGradGuard no_grad;
        torch::manual_seed(4);
        for (auto& [name, tensor] : fused.parameters()) tensor.add_(torch::randn_like(tensor), 0.2);
        const auto from = fused.state(), to = exact.state();
        for (size_t i = 0; i < to.size(); ++i) to[i].second.copy_(from[i].second);
        test(fused, exact);
      }
    }
}

TEST(DecodeState, EqualsTheWholePassOfEveryScheme) {
  const Tensor all = texts(3);
  int models = 0;
  for_every_scheme([&](const DecoderLm& fused, const DecoderLm& exact) {
    const Tensor truth = exact.logits(all, Pass{}).transpose(0, 1);
    const double size = std::max(1.0, truth.abs().max().item<double>());
    testing::on_every_target([&] {
      const Tensor got = decoded(fused.decode_plan(), all, std::vector<int64_t>(length, 1));
      // Float32 in sums of at most twenty products, through two layers.
      EXPECT_LT((got - truth).abs().max().item<double>(), 2e-5 * size);
    });
    ++models;
  });
  EXPECT_GT(models, 40);
}

TEST(DecodeState, BitsDependNeitherOnPiecesNorOnTheBatchNorOnThreads) {
  const Tensor all = texts(26);
  const int threads = at::get_num_threads();
  for_every_scheme([&](const DecoderLm& fused, const DecoderLm&) {
    const auto plan = fused.decode_plan();
    at::set_num_threads(2);
    const Tensor together = decoded(plan, all, {4, 1, 3, 1});
    at::set_num_threads(1);
    EXPECT_TRUE(torch::equal(decoded(plan, all, std::vector<int64_t>(length, 1)).index({torch::tensor({3, 4, 7, 8})}),
                             together));
    for (const int64_t text : {0, 7, 25})
      EXPECT_TRUE(torch::equal(decoded(plan, all.narrow(0, text, 1), {4, 1, 3, 1}), together.narrow(1, text, 1)));
  });
  at::set_num_threads(threads);
}

// Texts of different lengths, one that starts again, and one that is continued twice.
TEST(DecodeState, TextsGrowEachOnItsOwn) {
  ModelConfig config = small(Positions::rope);
  resolve_model(config, find_scheme("lp"));
  const DecoderLm model(config, find_scheme("lp"), vocab, 5);
  const auto plan = model.decode_plan();
  const Tensor all = texts(2);
  const auto alone = [&](const std::vector<int64_t>& tokens) {
    DecodeState state(plan, 1);
    const std::vector<int64_t> count = {static_cast<int64_t>(tokens.size())};
    return state.read(tokens, count)[0].clone();
  };
  DecodeState state(plan, 2);
  const std::vector<int64_t> a = piece(all.narrow(0, 0, 1), 0, 5), b = piece(all.narrow(0, 1, 1), 0, 2);
  std::vector<int64_t> both = a;
  both.insert(both.end(), b.begin(), b.end());
  const Tensor first = state.read(both, std::vector<int64_t>{5, 2}).clone();
  EXPECT_TRUE(torch::equal(first[0], alone(a)));
  EXPECT_TRUE(torch::equal(first[1], alone(b)));
  state.clear(0);
  const Tensor second = state.read(std::vector<int64_t>{7, 3, 1}, std::vector<int64_t>{2, 1}).clone();
  EXPECT_TRUE(torch::equal(second[0], alone({7, 3})));
  EXPECT_TRUE(torch::equal(second[1], alone({b[0], b[1], 1})));
  state.select(std::vector<int64_t>{1, 1, 0});
  const Tensor third = state.read(std::vector<int64_t>{4, 5, 6}).clone();
  EXPECT_TRUE(torch::equal(third[0], alone({b[0], b[1], 1, 4})));
  EXPECT_TRUE(torch::equal(third[1], alone({b[0], b[1], 1, 5})));
  EXPECT_TRUE(torch::equal(third[2], alone({7, 3, 6})));
}

TEST(DecodeState, RefusesMoreTokensThanTheWindow) {
  ModelConfig config = small(Positions::learned);
  resolve_model(config, find_scheme("none"));
  DecodeState state(DecoderLm(config, find_scheme("none"), vocab, 5).decode_plan(), 1);
  EXPECT_THAT([&] { state.read(std::vector<int64_t>(length + 1, 0), std::vector<int64_t>{length + 1}); },
              ::testing::ThrowsMessage<Error>("[model] got 10 tokens, expected at most model.seq_len = 9."));
}

}  // namespace
}  // namespace normlab
