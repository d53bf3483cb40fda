#include "normlab/ops/attention.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "gradient_check.h"
#include "normlab/base/error.h"

namespace normlab {
namespace {

using torch::Tensor;
constexpr double inf = std::numeric_limits<double>::infinity();

struct Qkv {
  Tensor q, k, v;
};
Qkv sample(int64_t t, int64_t h, int64_t kv, int64_t d) {
  torch::manual_seed(3);
  const auto real = torch::kFloat64;
  return {torch::randn({2, t, h, d}, real), torch::randn({2, t, kv, d}, real), torch::randn({2, t, kv, d}, real)};
}

Tensor attention(const Tensor& q, const Tensor& k, const Tensor& v, const AttentionCall& call,
                 const AttentionWeights& weights = {}) {
  return normlab::attention(torch::cat({q, k, v}, 2), q.size(2), call, weights);
}

AttentionCall lp_call(double p) { return {.form = {.qk = QkNorm::lp, .p = p}}; }

// The definition, written out with loops over plain numbers.
Tensor attention_by_loops(const Qkv& x, double p, double gain, double scale) {
  const int64_t b = x.q.size(0), t = x.q.size(1), h = x.q.size(2), d = x.q.size(3), group = h / x.k.size(2);
  const auto unit = [&](const Tensor& row) {
    if (p == 0.0) return row.clone();
    const double norm =
        std::isinf(p) ? row.abs().max().item<double>() : std::pow(row.abs().pow(p).sum().item<double>(), 1.0 / p);
    return Tensor(row / norm);
  };
  const Tensor out = torch::zeros({b, t, h, d}, torch::kFloat64);
  for (int64_t n = 0; n < b; ++n)
    for (int64_t head = 0; head < h; ++head)
      for (int64_t i = 0; i < t; ++i) {
        std::vector<double> weight;
        double total = 0.0;
        for (int64_t j = 0; j <= i; ++j) {
          const Tensor dot = (unit(x.q[n][i][head]) * unit(x.k[n][j][head / group])).sum();
          weight.push_back(std::exp(scale * gain * dot.item<double>()));
          total += weight.back();
        }
        for (int64_t j = 0; j <= i; ++j) out[n][i][head] += x.v[n][j][head / group] * (weight[j] / total);
      }
  return out;
}

TEST(Attention, EqualsItsDefinition) {
  const Qkv x = sample(7, 4, 2, 5);
  for (double p : {0.0, 0.5, 1.0, 2.0, 3.0, inf}) {
    AttentionCall call = p == 0.0 ? AttentionCall{} : lp_call(p);
    call.form.logit_scale = 0.7;
    const AttentionWeights weights{.gain = torch::full({1}, 1.9, torch::kFloat64)};
    const Tensor expected = attention_by_loops(x, p, 1.9, 0.7);
    EXPECT_LT((attention(x.q, x.k, x.v, call, weights) - expected).abs().max().item<double>(), 1e-12) << p;
  }
}

TEST(Attention, GradientsOfEveryOption) {
  const Qkv x = sample(4, 2, 1, 4);
  const RopeTable rope = make_rope(8, 4, 100.0, RopePairing::half, torch::kFloat64);
  for (double p : {1.5, 2.0, 3.0})
    for (QkScope scope : {QkScope::head, QkScope::all_heads})
      for (QkOrder order : {QkOrder::before_rope, QkOrder::after_rope})
        for (int64_t gains : {1, 2, 8}) {
          AttentionCall call = lp_call(p);
          call.form.scope = scope;
          call.form.order = order;
          call.rope = &rope;
          expect_gradients([&](const auto& in) { return attention(in[0], in[1], in[2], call, {.gain = in[3]}); },
                           {x.q, x.k, x.v, torch::linspace(1.0, 2.0, gains, torch::kFloat64)});
        }
}

TEST(Attention, GradientOfLearnedPAndDropout) {
  const Qkv x = sample(5, 2, 2, 4);
  AttentionCall call = lp_call(2.0);
  call.dropout = {.rate = 0.3, .key = {1, 2}, .first_row = 0};
  expect_gradients([&](const auto& in) { return attention(in[0], in[1], in[2], call, {.p = in[3]}); },
                   {x.q, x.k, x.v, torch::tensor({1.5, 2.5}, torch::kFloat64)});
}

TEST(Attention, IsInvariantToTheScaleOfQueriesAndKeys) {
  const Qkv x = sample(9, 2, 2, 8);
  for (double p : {1.0, 2.0, 3.0, inf}) {
    const AttentionCall call = lp_call(p);
    const Tensor plain = attention(x.q, x.k, x.v, call), scaled = attention(x.q * 17.0, x.k * 0.03, x.v, call);
    EXPECT_LT((plain - scaled).abs().max().item<double>(), 1e-13) << p;
  }
  const AttentionCall none;
  EXPECT_GT((attention(x.q, x.k, x.v, none) - attention(x.q * 17.0, x.k, x.v, none)).abs().max().item<double>(), 1e-3);
}

// |q_hat . k_hat| <= 1 for p <= 2 and <= d^(1 - 2/p) above, reached by constant vectors.
TEST(Attention, LogitsStayWithinTheirBound) {
  const int64_t d = 64;
  const Tensor flat = torch::ones({1, 1, 1, d}, torch::kFloat64);
  for (double p : {1.0, 1.5, 2.0, 2.5, 3.0, 4.0, inf}) {
    const double bound = p <= 2.0 ? 1.0 : std::pow(static_cast<double>(d), std::isinf(p) ? 1.0 : 1.0 - 2.0 / p);
    const AttentionCall call = lp_call(p);
    const Qkv x = sample(50, 1, 1, d);
    const Tensor q = normalise_queries(x.q, call, {}, 0), k = normalise_keys(x.k, call, {}, 0);
    const Tensor dots = torch::matmul(q.transpose(1, 2), k.transpose(1, 2).transpose(2, 3));
    EXPECT_LE(dots.abs().max().item<double>(), bound + 1e-12) << p;
    const Tensor unit = normalise_queries(flat, call, {}, 0);
    if (p >= 2.0) {
      EXPECT_NEAR((unit * unit).sum().item<double>(), bound, 1e-9) << p;
    }
  }
}

TEST(Attention, RopeCommutesWithTheNormOnlyForP2) {
  const Qkv x = sample(6, 2, 2, 8);
  const RopeTable rope = make_rope(6, 8, 100.0, RopePairing::interleaved, torch::kFloat64);
  for (double p : {2.0, 3.0}) {
    AttentionCall call = lp_call(p);
    call.form.logit_scale = 5.0;
    call.rope = &rope;
    const Tensor before = attention(x.q, x.k, x.v, call);
    call.form.order = QkOrder::after_rope;
    const double difference = (attention(x.q, x.k, x.v, call) - before).abs().max().item<double>();
    if (p == 2.0)
      EXPECT_LT(difference, 1e-13);
    else
      EXPECT_GT(difference, 1e-3);
  }
}

TEST(Attention, CacheGivesTheSameAsTheWholeSequence) {
  const Qkv x = sample(6, 4, 2, 8);
  const RopeTable rope = make_rope(6, 8, 100.0, RopePairing::half, torch::kFloat64);
  AttentionCall call = lp_call(3.0);
  const AttentionWeights weights{.gain = torch::full({4}, 3.0, torch::kFloat64)};
  call.rope = &rope;
  const Tensor whole = attention(x.q, x.k, x.v, call, weights);
  for (int64_t first : {1, 3, 5}) {  // the last tokens as one piece, after `first` cached ones
    const Tensor q = normalise_queries(x.q.slice(1, first), call, weights, first);
    const Tensor k = torch::cat({normalise_keys(x.k.slice(1, 0, first), call, weights, 0),
                                 normalise_keys(x.k.slice(1, first), call, weights, first)},
                                1);
    EXPECT_LT((attend(q, k, x.v, call) - whole.slice(1, first)).abs().max().item<double>(), 1e-13) << first;
  }
}

TEST(Attention, RefusesShapesThatDoNotFit) {
  const Qkv x = sample(4, 2, 2, 8);
  EXPECT_THROW(normlab::attention(x.q, 2, {}, {}), Error);                             // no keys
  EXPECT_THROW(normlab::attention(torch::cat({x.q, x.k, x.v}, 2), 3, {}, {}), Error);  // 3 + 2 n is not 6
  EXPECT_THROW(attention(x.q.slice(2, 0, 1), x.k, x.v, {}), Error);                    // more keys than queries
}

TEST(Attention, RunsOnMetaInEveryFloatType) {
  for (auto type : {torch::kFloat32, torch::kFloat64, torch::kBFloat16}) {
    const auto options = torch::TensorOptions().device(torch::kMeta).dtype(type);
    const Tensor q = torch::empty({2, 8, 4, 16}, options), k = torch::empty({2, 8, 2, 16}, options);
    AttentionCall call = lp_call(3.0);
    const AttentionWeights weights{.gain = torch::empty({4}, options)};
    for (double rate : {0.0, 0.1}) {
      call.dropout.rate = rate;
      EXPECT_EQ(attention(q, k, k, call, weights).sizes(), q.sizes());
    }
  }
}

TEST(Rope, RotatesPairsByPositionTimesFrequency) {
  const Tensor x = torch::tensor({1.0, 0.0, 1.0, 0.0}, torch::kFloat64).view({1, 1, 1, 4});
  const RopeTable interleaved = make_rope(10, 4, 100.0, RopePairing::interleaved, torch::kFloat64);
  const Tensor y = rotate(x, interleaved, 3).view({4});  // frequencies 1 and 100^(-1/2)
  EXPECT_NEAR(y[0].item<double>(), std::cos(3.0), 1e-15);
  EXPECT_NEAR(y[1].item<double>(), std::sin(3.0), 1e-15);
  EXPECT_NEAR(y[2].item<double>(), std::cos(0.3), 1e-15);
  EXPECT_NEAR(y[3].item<double>(), std::sin(0.3), 1e-15);
  const RopeTable half = make_rope(10, 4, 100.0, RopePairing::half, torch::kFloat64);
  const Tensor z = rotate(x, half, 3).view({4});  // pairs (0, 2) and (1, 3)
  EXPECT_NEAR(z[0].item<double>(), std::cos(3.0) - std::sin(3.0), 1e-15);
  EXPECT_NEAR(z[2].item<double>(), std::cos(3.0) + std::sin(3.0), 1e-15);
  EXPECT_NEAR(z[1].item<double>(), 0.0, 1e-15);
}

TEST(Dropout, EqualsTheScalarDefinitionAndIgnoresTheSplit) {
  const Tensor x = torch::ones({6, 33}, torch::kFloat32);
  const Dropout how{.rate = 0.25, .key = {123, 456}, .first_row = 4000000000};
  const Tensor y = dropout(x, how);
  for (int64_t row = 0; row < 6; ++row)
    for (int64_t column = 0; column < 33; ++column) {
      const uint32_t key = row_key(how.key, static_cast<uint32_t>(how.first_row + row));
      const bool kept = keep_bits(key, static_cast<uint32_t>(column)) >= drop_threshold(how.rate);
      EXPECT_FLOAT_EQ(y[row][column].item<float>(), kept ? 1.0F / 0.75F : 0.0F);
    }
  Dropout second = how;
  second.first_row += 2;
  EXPECT_TRUE(torch::equal(dropout(x.slice(0, 2), second), y.slice(0, 2)));
}

TEST(Dropout, DropsAtItsRate) {
  const Tensor y = dropout(torch::ones({1000, 1000}), {.rate = 0.2, .key = {5, 6}});
  EXPECT_NEAR((y == 0).to(torch::kFloat64).mean().item<double>(), 0.2, 0.002);
  EXPECT_NEAR(y.mean().item<double>(), 1.0, 0.003);
}

}  // namespace
}  // namespace normlab
