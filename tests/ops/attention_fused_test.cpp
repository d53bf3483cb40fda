// The fused op against the composite one: values, every gradient, the split of the batch, the number of threads.
#include "normlab/ops/attention_fused.h"

#include <ATen/Parallel.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "normlab/base/error.h"

namespace normlab {
namespace {

using torch::Tensor;
constexpr double inf = std::numeric_limits<double>::infinity();

struct Case {
  int64_t b, t, h, kv, d;
  double p;  // 0: no norm
  int64_t gains;
  bool rope, learn_p, causal;
  double dropout;
};

struct Result {
  Tensor out, d_qkv, d_gain, d_p;
};

Result compute(const Case& c, bool fused, torch::ScalarType type) {
  torch::manual_seed(9);
  const Tensor qkv = torch::randn({c.b, c.t, c.h + 2 * c.kv, c.d}).to(type).requires_grad_(true);
  const Tensor weight = torch::randn({c.b, c.t, c.h, c.d}).to(type);
  const RopeTable rope = make_rope(c.t, c.d, 100.0, RopePairing::half, torch::TensorOptions().dtype(type));
  AttentionCall call{.form = {.qk = c.p == 0 ? QkNorm::none : QkNorm::lp, .p = c.p, .logit_scale = 0.8},
                     .fused = fused,
                     .causal = c.causal,
                     .dropout = {.rate = c.dropout, .key = {3, 4}, .first_row = 11}};
  if (c.rope) call.rope = &rope, call.form.order = QkOrder::after_rope;
  AttentionWeights weights;
  if (c.gains) weights.gain = torch::linspace(2, 3, c.gains).to(type).requires_grad_(true);
  if (c.learn_p) weights.p = torch::linspace(1.5, 3, c.h).to(type).requires_grad_(true);
  const Tensor out = attention(qkv, c.h, call, weights);
  (out * weight).sum().backward();
  return {out.detach(), qkv.grad(), c.gains ? weights.gain.grad() : Tensor(), c.learn_p ? weights.p.grad() : Tensor()};
}

double error(const Tensor& got, const Tensor& truth) {
  return (got.to(torch::kFloat64) - truth).abs().max().item<double>();
}

TEST(FusedAttention, IsAsExactAsTheCompositeOne) {
  const Case cases[] = {
      {2, 7, 2, 2, 8, 0, 0, false, false, true, 0.0},      {2, 33, 4, 2, 16, 2, 1, false, false, true, 0.0},
      {1, 64, 2, 2, 32, 3, 2, true, false, true, 0.0},     {2, 31, 2, 1, 8, 2.5, 16, true, false, true, 0.2},
      {1, 127, 2, 2, 64, inf, 1, false, false, true, 0.1}, {2, 16, 2, 2, 8, 2, 2, true, true, true, 0.0},
      {2, 9, 2, 2, 8, 1, 1, false, false, false, 0.3},
  };
  for (const Case& c : cases) {
    const Result truth = compute(c, false, torch::kFloat64), plain = compute(c, false, torch::kFloat32),
                 fused = compute(c, true, torch::kFloat32);
    const auto expect = [&](const char* what, Tensor Result::*member, double factor) {
      if (!(truth.*member).defined()) return;
      ASSERT_TRUE((fused.*member).defined()) << what;
      const double floor = 1e-7 * (1.0 + (truth.*member).abs().max().item<double>());
      EXPECT_LE(error(fused.*member, truth.*member), factor * error(plain.*member, truth.*member) + floor)
          << what << " at t = " << c.t << ", p = " << c.p;
    };
    expect("output", &Result::out, 2.0);
    expect("d_qkv", &Result::d_qkv, 3.0);
    expect("d_gain", &Result::d_gain, 3.0);
    expect("d_p", &Result::d_p, 3.0);
  }
}

// What a scheme may add to the plain form: norms with gains of their own, caps, scales by row, channel gains.
struct Options {
  QkNorm norm;
  int64_t affine = 0;  // entries a head, times the heads when `own`
  bool own = false, bias = false;
  double soft_cap = 0.0;
  RowScale row_scale = RowScale::one;
  bool channel_gain = false;
  QkOrder order = QkOrder::before_rope;
  int window = 0;
};

struct OptionsResult {
  Tensor out;
  std::vector<Tensor> gradients;
  std::vector<float> largest;
};

OptionsResult compute(const Options& o, bool fused, torch::ScalarType type, uint64_t seed) {
  constexpr int64_t b = 2, t = 19, h = 4, kv = 2, d = 8;
  torch::manual_seed(seed);
  const auto leaf = [&](const Tensor& values) { return values.to(type).requires_grad_(true); };
  std::vector<Tensor> leaves = {leaf(torch::randn({b, t, h + 2 * kv, d}))};
  const RopeTable rope = make_rope(t, d, 100.0, RopePairing::interleaved, torch::TensorOptions().dtype(type));
  const AttentionForm form{.qk = o.norm,
                           .p = 2.5,
                           .order = o.order,
                           .qk_eps = 1e-6,
                           .logit_scale = 0.7,
                           .row_scale = o.row_scale,
                           .soft_cap = o.soft_cap,
                           .window = o.window};
  AttentionWeights weights;
  MaxLogits max_logits(h);
  const auto affine = [&](int64_t heads, double first) {
    leaves.push_back(leaf(torch::linspace(first, 1.5, o.own ? heads * d : d)));
    return leaves.back();
  };
  if (o.affine) weights.q_affine.weight = affine(h, 0.5), weights.k_affine.weight = affine(kv, 0.7);
  if (o.bias) weights.q_affine.bias = affine(h, -1.0), weights.k_affine.bias = affine(kv, -0.5);
  if (o.channel_gain) leaves.push_back(leaf(torch::linspace(0.5, 2, h * d))), weights.gain = leaves.back();
  const Tensor out =
      attention(leaves.front(), h, {.form = form, .fused = fused, .rope = &rope}, weights, {.max_logits = &max_logits});
  (out * torch::randn({b, t, h, d}).to(type)).sum().backward();
  OptionsResult result{.out = out.detach(), .gradients = {}, .largest = {}};
  for (const Tensor& each : leaves) result.gradients.push_back(each.grad());
  for (size_t head = 0; head < h; ++head) result.largest.push_back(max_logits.of(head));
  return result;
}

TEST(FusedAttention, ServesTheOptionsOfTheSchemes) {
  const Options cases[] = {
      {.norm = QkNorm::rms},
      {.norm = QkNorm::rms, .affine = 1},
      {.norm = QkNorm::rms, .affine = 1, .own = true, .order = QkOrder::after_rope},
      {.norm = QkNorm::layer, .affine = 1, .bias = true},
      {.norm = QkNorm::layer,
       .affine = 1,
       .own = true,
       .bias = true,
       .channel_gain = true,
       .order = QkOrder::after_rope},
      {.norm = QkNorm::none, .soft_cap = 2.0},
      {.norm = QkNorm::none, .row_scale = RowScale::log_n},
      {.norm = QkNorm::none, .channel_gain = true, .order = QkOrder::after_rope},
      {.norm = QkNorm::lp,
       .soft_cap = 1.0,
       .row_scale = RowScale::log_n,
       .channel_gain = true,
       .order = QkOrder::after_rope},
      {.norm = QkNorm::lp, .channel_gain = true, .order = QkOrder::after_rope},
      {.norm = QkNorm::lp, .soft_cap = 1.0, .row_scale = RowScale::log_n, .window = 5},
      {.norm = QkNorm::lp, .window = 1},
      {.norm = QkNorm::rms, .affine = 1, .order = QkOrder::after_rope, .window = 7},
      {.norm = QkNorm::lp, .window = 64},
  };
  for (size_t i = 0; i < std::size(cases); ++i) {
    SCOPED_TRACE(i);
    // The largest error of one draw varies several times over, in both forms: sums over draws are compared.
    struct Errors {
      double fused = 0.0, plain = 0.0, rounding = 0.0;
      void add(const Tensor& got, const Tensor& composite, const Tensor& exact) {
        fused += error(got, exact), plain += error(composite, exact);
        rounding += 2e-7 * (1.0 + exact.abs().max().item<double>());
      }
    };
    Errors out;
    std::vector<Errors> gradients;
    for (uint64_t seed = 10; seed < 18; ++seed) {
      const OptionsResult truth = compute(cases[i], false, torch::kFloat64, seed),
                          plain = compute(cases[i], false, torch::kFloat32, seed),
                          fused = compute(cases[i], true, torch::kFloat32, seed);
      out.add(fused.out, plain.out, truth.out);
      gradients.resize(truth.gradients.size());
      for (size_t k = 0; k < gradients.size(); ++k)
        gradients[k].add(fused.gradients[k], plain.gradients[k], truth.gradients[k]);
      for (size_t head = 0; head < truth.largest.size(); ++head)
        EXPECT_NEAR(fused.largest[head], truth.largest[head], 1e-5 * (1.0 + std::abs(truth.largest[head])));
    }
    EXPECT_LE(out.fused, 2.0 * out.plain + out.rounding);
    for (size_t k = 0; k < gradients.size(); ++k)
      EXPECT_LE(gradients[k].fused, 3.0 * gradients[k].plain + gradients[k].rounding) << k;
  }
}

TEST(FusedAttention, GivesTheSameBitsForAnyNumberOfThreads) {
  const Case c{3, 40, 4, 2, 16, 3, 4, true, false, true, 0.2};
  const int threads = at::get_num_threads();
  at::set_num_threads(1);
  const Result one = compute(c, true, torch::kFloat32);
  at::set_num_threads(2);
  const Result two = compute(c, true, torch::kFloat32);
  at::set_num_threads(threads);
  EXPECT_TRUE(torch::equal(one.out, two.out));
  EXPECT_TRUE(torch::equal(one.d_qkv, two.d_qkv));
  EXPECT_TRUE(torch::equal(one.d_gain, two.d_gain));
}

TEST(FusedAttention, RefusesWhatItCannotCompute) {
  AttentionCall call{.fused = true};
  EXPECT_THROW(attention(torch::zeros({1, 4, 3, 8}, torch::kFloat64), 1, call, {}), Error);
  const RopeTable rope = make_rope(4, 8, 100.0, RopePairing::half, torch::kFloat32);
  call.rope = &rope;
  const AttentionWeights channels{.gain = torch::ones({8})};
  EXPECT_THROW(attention(torch::zeros({1, 4, 3, 8}), 1, call, channels), Error);
  call.form.order = QkOrder::after_rope;
  EXPECT_NO_THROW(attention(torch::zeros({1, 4, 3, 8}), 1, call, channels));
}

}  // namespace
}  // namespace normlab
