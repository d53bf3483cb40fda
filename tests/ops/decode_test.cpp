// Decoding with kept keys against attention over the whole sequence, and rows of heads by the kernels against
// PyTorch's operators.
#include "normlab/ops/decode.h"

#include <gtest/gtest.h>

#include <limits>

#include "kernels/every_target.h"
#include "normlab/ops/decode_heads.h"

namespace normlab {
namespace {

using torch::Tensor;
constexpr int64_t batch = 3, length = 70, heads = 4, kv_heads = 2, d = 12;

struct Case {
  AttentionForm form;
  int64_t gains = 0;   // entries of the gain
  int64_t affine = 0;  // 1: shared by the heads, 2: each has its own
  bool bias = false, learned_p = false, rope = true;
};

std::vector<Case> cases() {
  constexpr double inf = std::numeric_limits<double>::infinity();
  const auto norm = [](QkNorm qk, double p = 2.0) { return AttentionForm{.qk = qk, .p = p, .logit_scale = 0.8}; };
  std::vector<Case> list = {
      {.form = norm(QkNorm::none)},
      {.form = norm(QkNorm::none), .gains = heads, .rope = false},
      {.form = norm(QkNorm::lp, 2.5), .gains = 1},
      {.form = norm(QkNorm::lp, inf), .gains = heads},
      {.form = norm(QkNorm::lp), .gains = heads * d},
      {.form = norm(QkNorm::lp), .learned_p = true},
      {.form = norm(QkNorm::rms), .affine = 1},
      {.form = norm(QkNorm::rms), .affine = 2},
      {.form = norm(QkNorm::layer), .affine = 2, .bias = true},
      {.form = norm(QkNorm::rms), .gains = heads},
      {.form = norm(QkNorm::lp, 3.0)},
      {.form = norm(QkNorm::lp, 2.5), .gains = 1},
      {.form = norm(QkNorm::rms), .affine = 1},
      {.form = norm(QkNorm::none)},
  };
  list[4].form.order = QkOrder::after_rope;
  list[7].form.order = QkOrder::after_rope;
  list[9].form.row_scale = RowScale::log_n;
  list[10].form.soft_cap = 0.5;
  list[11].form.window = 9;
  list[12].form.window = 64, list[12].form.row_scale = RowScale::log_n;
  list[13].form.window = 1;
  return list;
}

struct Setting {
  Tensor qkv;
  RopeTable rope;
  AttentionWeights weights;
  AttentionCall call;

  Setting(const Case& c, torch::ScalarType type, RopePairing pairing = RopePairing::half) {
    torch::manual_seed(7);
    qkv = torch::randn({batch, length, heads + 2 * kv_heads, d}).to(type);
    rope = make_rope(length, d, 100.0, pairing, torch::TensorOptions().dtype(type));
    const auto line = [&](double first, double last, int64_t n) { return torch::linspace(first, last, n).to(type); };
    const int64_t of_q = c.affine == 2 ? heads * d : d, of_k = c.affine == 2 ? kv_heads * d : d;
    if (c.gains) weights.gain = line(1.5, 3.0, c.gains);
    if (c.learned_p) weights.p = line(2.2, 2.2, 1);
    if (c.affine) weights.q_affine.weight = line(0.5, 1.5, of_q), weights.k_affine.weight = line(0.7, 1.2, of_k);
    if (c.bias) weights.q_affine.bias = line(-0.5, 0.5, of_q), weights.k_affine.bias = line(-0.2, 0.4, of_k);
    call = {.form = c.form, .rope = c.rope ? &rope : nullptr};
  }
  // In pieces of these many tokens.
  Tensor decoded(const std::vector<int64_t>& pieces) const {
    KvCache cache;
    std::vector<Tensor> out;
    for (const int64_t t : pieces)
      out.push_back(cached_attention(qkv.narrow(1, cache.length, t), heads, call, weights, cache));
    return torch::cat(out, 1);
  }
};

double largest(const Tensor& difference) { return difference.abs().max().item<double>(); }

const std::vector<int64_t> pieces = {5, 1, 1, 60, 3};

TEST(CachedAttention, EqualsAttentionOverTheWholeSequence) {
  const torch::NoGradGuard no_grad;
  for (const RopePairing pairing : {RopePairing::half, RopePairing::interleaved})
    for (const Case& c : cases()) {
      const Setting exact(c, torch::kFloat64, pairing);
      const Tensor truth = attention(exact.qkv, heads, exact.call, exact.weights);
      EXPECT_LT(largest(exact.decoded(pieces) - truth), 1e-12);
    }
}

TEST(CachedAttention, HasGradients) {
  Setting it(cases()[2], torch::kFloat32);
  it.qkv.requires_grad_(true);
  it.decoded({5, 3}).sum().backward();
  EXPECT_GT(largest(it.qkv.grad().narrow(1, 0, 8)), 0.0);
  KvCache cache;  // begun without gradients, continued with them
  {
    const torch::NoGradGuard no_grad;
    cached_attention(it.qkv.narrow(1, 0, 5), heads, it.call, it.weights, cache);
  }
  const Tensor last = cached_attention(it.qkv.narrow(1, 5, 1), heads, it.call, it.weights, cache);
  const Tensor truth = attention(it.qkv.narrow(1, 0, 6), heads, it.call, it.weights).narrow(1, 5, 1);
  EXPECT_LT(largest(last - truth), 1e-5);
}

// Tokens of [t, heads, d], each at its position.
Tensor by_kernels(const DecodeHeads& rows, const Tensor& x_thd) {
  const Tensor x = x_thd.contiguous(), out = torch::empty_like(x);
  const int64_t token = x.size(1) * x.size(2);
  for (int64_t t = 0; t < x.size(0); ++t)
    rows(x.const_data_ptr<float>() + t * token, t, out.mutable_data_ptr<float>() + t * token);
  return out;
}

TEST(DecodeHeads, EqualTheCompositeOnesOnEveryTarget) {
  const torch::NoGradGuard no_grad;
  testing::on_every_target([] {
    for (const RopePairing pairing : {RopePairing::half, RopePairing::interleaved})
      for (const Case& c : cases()) {
        const Setting exact(c, torch::kFloat64, pairing), it(c, torch::kFloat32, pairing);
        const AttentionWeights& w = it.weights;
        const DecodeHeads queries(it.call.form, it.call.rope, {.p = w.p, .gain = w.gain, .affine = w.q_affine}, heads,
                                  d);
        const DecodeHeads keys(it.call.form, it.call.rope, {.p = w.p, .gain = {}, .affine = w.k_affine}, kv_heads, d);
        const auto parts = [](const Setting& s) { return s.qkv.split_with_sizes({heads, kv_heads, kv_heads}, 2); };
        // Rows have norms of at most sqrt(d) times gains of at most 3.
        EXPECT_LT(largest(by_kernels(queries, parts(it)[0][0]) -
                          normalise_queries(parts(exact)[0], exact.call, exact.weights, 0)[0]),
                  1e-5);
        EXPECT_LT(largest(by_kernels(keys, parts(it)[1][0]) -
                          normalise_keys(parts(exact)[1], exact.call, exact.weights, 0)[0]),
                  1e-5);
      }
  });
}

}  // namespace
}  // namespace normlab
