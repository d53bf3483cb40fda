#include "normlab/ops/attention_stats.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace normlab {
namespace {

using torch::Tensor;

struct Case {
  int64_t b, t, h, kv, d;
  QkNorm norm;
  double p, gain, scale, dropout;
  bool causal, rope;
  std::vector<int64_t> key_lengths = {};  // of each batch row; keys after them are padding
  int window = 0;
};

const std::vector<Case> cases = {
    {2, 20, 3, 3, 8, QkNorm::lp, 3, 6, 0.8, 0, true, false},
    {1, 33, 4, 2, 16, QkNorm::lp, 2, 60, 1, 0, true, true},
    {2, 7, 2, 1, 5, QkNorm::none, 2, 1, 0.3, 0, false, false},
    {1, 127, 1, 1, 31, QkNorm::lp, 1.5, 500, 1, 0.3, true, false},
    {3, 1, 2, 2, 4, QkNorm::lp, 2, 9, 1, 0, true, false},
    {1, 64, 2, 2, 64, QkNorm::none, 2, 1, 4, 0, true, true},
    {3, 33, 2, 2, 8, QkNorm::lp, 2, 9, 1, 0, false, false, {5, 33, 1}},
    {2, 70, 4, 2, 16, QkNorm::lp, 3, 20, 1, 0, true, true, {1, 66}},
    {2, 70, 4, 2, 16, QkNorm::lp, 3, 20, 1, 0, true, true, {}, 9},
    {1, 200, 2, 2, 8, QkNorm::lp, 2, 9, 1, 0, true, false, {}, 65},
};

struct Inputs {
  Tensor qkv;
  RopeTable rope;
  AttentionCall call;
  AttentionWeights weights;
};

Inputs inputs(const Case& c, torch::Dtype type, bool fused) {
  torch::manual_seed(9);
  Inputs in;
  in.qkv = torch::randn({c.b, c.t, c.h + 2 * c.kv, c.d}).to(type);
  if (c.rope) in.rope = make_rope(c.t, c.d, 10000.0, RopePairing::half, torch::TensorOptions(type));
  in.call = {
      .form = {.qk = c.norm, .p = c.p, .logit_scale = c.scale, .window = c.window}, .fused = fused, .causal = c.causal};
  if (!c.key_lengths.empty()) in.call.key_lengths_b = torch::tensor(c.key_lengths);
  if (c.norm != QkNorm::none) in.weights.gain = torch::full({1}, c.gain, type);
  if (c.dropout > 0) in.call.dropout = {.rate = c.dropout, .key = dropout_key(stream_key(1, 2, 3, 4)), .first_row = 0};
  return in;
}

std::vector<AttentionStats> counted(const Case& c, bool fused) {
  Inputs in = inputs(c, torch::kFloat32, fused);
  if (c.rope) in.call.rope = &in.rope;
  std::vector<AttentionStats> stats(static_cast<size_t>(c.b * c.h));
  const Tensor out = attention(in.qkv, c.h, in.call, in.weights, {.stats = stats.data()});
  EXPECT_TRUE(torch::equal(out, attention(in.qkv, c.h, in.call, in.weights))) << "counting changed the output";
  return stats;
}

// By the definitions, entry by entry, in double.
std::vector<AttentionStats> by_definition(const Case& c) {
  Inputs in = inputs(c, torch::kFloat64, false);
  if (c.rope) in.call.rope = &in.rope;
  const auto parts = in.qkv.split_with_sizes({c.h, c.kv, c.kv}, 2);
  const Tensor q = normalise_queries(parts[0], in.call, in.weights, 0),
               k = normalise_keys(parts[1], in.call, in.weights, 0);
  std::vector<AttentionStats> stats(static_cast<size_t>(c.b * c.h));
  for (int64_t b = 0; b < c.b; ++b)
    for (int64_t h = 0; h < c.h; ++h) {
      AttentionStats& s = stats[static_cast<size_t>(b * c.h + h)];
      for (int64_t i = 0; i < c.t; ++i) {
        const int64_t length = c.key_lengths.empty() ? c.t : c.key_lengths[static_cast<size_t>(b)];
        const int64_t end = std::min(c.causal ? i + 1 : c.t, length);
        const int64_t first = c.window > 0 ? std::max<int64_t>(0, i + 1 - c.window) : 0, n = end - first;
        std::vector<double> logits;
        double total = 0.0, entropy = 0.0, most = -1e300, least = 1e300;
        for (int64_t j = first; j < end; ++j) {
          logits.push_back(c.scale * q[b][i][h].dot(k[b][j][h * c.kv / c.h]).item<double>());
          most = std::max(most, logits.back()), least = std::min(least, logits.back());
          s.sum_squares += logits.back() * logits.back();
        }
        for (const double x : logits) total += std::exp(x - most);
        for (const double x : logits) entropy -= std::exp(x - most) / total * (x - most - std::log(total));
        s.max_logit = std::max(s.max_logit, static_cast<float>(most));
        s.min_logit = std::min(s.min_logit, static_cast<float>(least));
        s.n_logits += n;
        if (n < 2) continue;
        s.sum_entropy += entropy;
        s.sum_relative_entropy += entropy / std::log(static_cast<double>(n));
        s.min_entropy = std::min(s.min_entropy, static_cast<float>(entropy));
        s.sum_spread += most - least;
        s.n_saturated += 1.0 / total > 0.99;
        s.n_rows += 1;
      }
    }
  return stats;
}

// Sums to 1e-4; a maximum is one of the logits, so that only the rounding of float32 is between.
TEST(AttentionStats, BothPathsFollowTheDefinitions) {
  for (const Case& c : cases) {
    const auto want = by_definition(c);
    for (const bool fused : {false, true}) {
      const auto got = counted(c, fused);
      for (size_t i = 0; i < want.size(); ++i) {
        SCOPED_TRACE(testing::Message() << (fused ? "fused" : "composite") << " t = " << c.t << " head " << i);
        const double size = std::max(std::abs(want[i].max_logit), std::abs(want[i].min_logit));
        EXPECT_NEAR(got[i].max_logit, want[i].max_logit, 2e-6 * size);
        EXPECT_NEAR(got[i].min_logit, want[i].min_logit, 2e-6 * size);
        EXPECT_NEAR(got[i].sum_squares, want[i].sum_squares, 1e-4 * want[i].sum_squares);
        EXPECT_EQ(got[i].n_logits, want[i].n_logits);
        EXPECT_NEAR(got[i].sum_entropy, want[i].sum_entropy, 1e-4 * want[i].sum_entropy + 1e-6 * size);
        EXPECT_NEAR(got[i].sum_relative_entropy, want[i].sum_relative_entropy,
                    1e-4 * want[i].sum_relative_entropy + 1e-6 * size);
        EXPECT_NEAR(got[i].min_entropy, want[i].min_entropy, 1e-4F * want[i].min_entropy + 1e-6 * size);
        EXPECT_NEAR(got[i].sum_spread, want[i].sum_spread, 1e-4 * want[i].sum_spread);
        EXPECT_EQ(got[i].n_saturated, want[i].n_saturated);
        EXPECT_EQ(got[i].n_rows, want[i].n_rows);
      }
    }
  }
}

TEST(AttentionStats, RowsThatSeeNoKeyCountForNothing) {
  constexpr double inf = std::numeric_limits<double>::infinity();
  Tensor logits = torch::zeros({1, 3, 4});
  logits[0][0].fill_(-inf);
  logits[0][1][0] = 2.0;
  const AttentionStats got = attention_stats(logits)[0];
  EXPECT_EQ(got.n_rows, 2);
  EXPECT_EQ(got.n_logits, 8);
  EXPECT_EQ(got.max_logit, 2.0F);
  EXPECT_EQ(got.min_logit, 0.0F);
  EXPECT_DOUBLE_EQ(got.sum_spread, 2.0);
  const AttentionStats none = attention_stats(torch::full({1, 2, 3}, -inf))[0];
  EXPECT_EQ(none.n_rows, 0);
  EXPECT_EQ(none.n_logits, 0);
  EXPECT_EQ(none.sum_squares, 0.0);
  EXPECT_EQ(none.max_logit, AttentionStats{}.max_logit);
}

}  // namespace
}  // namespace normlab
