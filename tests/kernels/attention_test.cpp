// Attention kernels against the double reference: every case of the table, forward and gradient, on every instruction
// set of this machine and on the scalar twin. The root-mean-square error of a kernel may be twice (gradients: three
// times) that of the same computation in plain float, its worst error twice as much again, plus a few units in the
// last place: a worst error is one draw, and its ratio scatters by two.
#include "normlab/kernels/attention.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "kernels/attention_harness.h"
#include "kernels/every_target.h"

namespace normlab::testing {
namespace {

TEST(Attention, MatchesTheReferenceOnEveryInstructionSet) {
  on_every_target([] {
    for (const Expected& e : expectations()) expect_close(e, run_kernels(kBest, e.c, e.in).result);
  });
}

TEST(Attention, ScalarTwinMatchesTheReference) {
  for (const Expected& e : expectations()) expect_close(e, run_kernels(kTwin, e.c, e.in).result);
}

TEST(Attention, HardValuesGiveFiniteResults) {
  for (const Expected& e : expectations()) {
    const AttentionResult<float> result = run_kernels(kBest, e.c, e.in).result;
    for (const auto& [name, values] : result.tensors())
      for (float value : *values)
        ASSERT_TRUE(std::isfinite(value) || std::string(name) == "lse") << label(e.c) << " " << name;
  }
}

TEST(Attention, RowsThatSeeNoKeyAreZero) {
  const AttentionCase c{.name = "masked rows", .tq = 70, .tk = 5, .d = 8};
  const AttentionResult<float> r = run_kernels(kBest, c, make_inputs(c)).result;
  for (size_t i = 0; i < 65 * 8; ++i) {
    EXPECT_EQ(r.o[i], 0.0F);
    EXPECT_EQ(r.dq[i], 0.0F);
  }
  EXPECT_EQ(r.lse[64], std::numeric_limits<float>::infinity());
  EXPECT_NE(r.o[65 * 8], 0.0F);
}

TEST(Attention, PaddingKeysGetZeroGradients) {
  const AttentionCase c{.name = "padding", .tq = 20, .tk = 20, .d = 8, .kv_len = 11};
  const AttentionResult<float> r = run_kernels(kBest, c, make_inputs(c)).result;
  for (size_t i = 11 * 8; i < 20 * 8; ++i) {
    EXPECT_EQ(r.dk[i], 0.0F);
    EXPECT_EQ(r.dv[i], 0.0F);
  }
  EXPECT_NE(r.dv[10 * 8], 0.0F);
}

TEST(Attention, NaNIsNotSwallowed) {
  for (float p : {1.0F, 2.0F, 2.5F, 3.14159265F}) {
    const AttentionCase c{.name = "nan", .p = p};
    AttentionInputs in = make_inputs(c);
    in.q[3] = std::numeric_limits<float>::quiet_NaN();
    on_every_target([&] {
      const AttentionResult<float> r = run_kernels(kBest, c, in).result;
      EXPECT_TRUE(std::isnan(r.o[0])) << p;
      EXPECT_FALSE(std::isnan(r.o[16])) << p;
    });
  }
}

// Statistics by their definitions, from a second pass over the logits of the reference's formulas.
AttentionStats plain_stats(const AttentionCase& c, const AttentionInputs& in) {
  AttentionStats stats;
  for (ptrdiff_t i = 0; i < c.tq; ++i) {
    std::vector<double> s;
    for (ptrdiff_t j = 0; j <= i && j < c.tk; ++j) {
      double dot = 0.0, qq = 0.0, kk = 0.0;
      for (ptrdiff_t ch = 0; ch < c.d; ++ch) {
        const double q = in.q[count(i * c.d + ch)], k = in.k[count(j * c.d + ch)];
        dot += q * k, qq += q * q, kk += k * k;
      }
      const double logit = in.gain[0] * dot / std::sqrt(qq) / std::sqrt(kk);
      s.push_back(c.soft_cap > 0 ? c.soft_cap * std::tanh(logit / c.soft_cap) : logit);
    }
    const double most = *std::max_element(s.begin(), s.end());
    double total = 0.0, entropy = 0.0;
    for (double logit : s) total += std::exp(logit - most);
    for (double logit : s) {
      const double a = std::exp(logit - most) / total;
      entropy -= a * std::log(a);
      stats.sum_squares += logit * logit;
      stats.min_logit = std::min(stats.min_logit, static_cast<float>(logit));
    }
    stats.max_logit = std::max(stats.max_logit, static_cast<float>(most));
    stats.n_logits += static_cast<int64_t>(s.size());
    if (s.size() < 2) continue;
    stats.sum_entropy += entropy;
    stats.sum_relative_entropy += entropy / std::log(static_cast<double>(s.size()));
    stats.sum_spread += most - *std::min_element(s.begin(), s.end());
    stats.min_entropy = std::min(stats.min_entropy, static_cast<float>(entropy));
    stats.n_saturated += 1.0 / total > 0.99;
    stats.n_rows += 1;
  }
  return stats;
}

void expect_same(const AttentionStats& got, const AttentionStats& want) {
  EXPECT_NEAR(got.max_logit, want.max_logit, 1e-5F * std::abs(want.max_logit));
  EXPECT_NEAR(got.min_logit, want.min_logit, 1e-5F * std::abs(want.min_logit));
  EXPECT_NEAR(got.sum_squares, want.sum_squares, 1e-5 * want.sum_squares);
  EXPECT_EQ(got.n_logits, want.n_logits);
  EXPECT_NEAR(got.sum_entropy, want.sum_entropy, 1e-5 * want.sum_entropy + 1e-4);
  EXPECT_NEAR(got.sum_relative_entropy, want.sum_relative_entropy, 1e-5 * want.sum_relative_entropy + 1e-4);
  EXPECT_NEAR(got.sum_spread, want.sum_spread, 1e-5 * want.sum_spread);
  EXPECT_NEAR(got.min_entropy, want.min_entropy, 2e-5F);
  EXPECT_EQ(got.n_saturated, want.n_saturated);
  EXPECT_EQ(got.n_rows, want.n_rows);
}

TEST(Attention, StatisticsFollowTheirDefinitions) {
  for (float cap : {0.0F, 6.0F})
    for (float dropout : {0.0F, 0.4F})
      for (float gain : {2.0F, 60.0F}) {
        const AttentionCase c{.name = "stats", .tq = 150, .tk = 150, .soft_cap = cap, .dropout = dropout};
        AttentionInputs in = make_inputs(c);
        in.gain = {gain};
        const AttentionStats want = plain_stats(c, in);
        expect_same(run_kernels(kTwin, c, in).stats[0], want);
        on_every_target([&] { expect_same(run_kernels(kBest, c, in).stats[0], want); });
      }
}

TEST(Attention, StatisticsDoNotChangeTheOutput) {
  const AttentionCase c{.name = "stats", .tq = 150, .tk = 150};
  const AttentionInputs in = make_inputs(c);
  EXPECT_EQ(run_kernels(kBest, c, in, true).result.o, run_kernels(kBest, c, in, false).result.o);
}

TEST(Attention, MergedStatisticsAreThoseOfBoth) {
  AttentionStats a{.max_logit = 1,
                   .min_logit = -3,
                   .sum_squares = 2,
                   .n_logits = 3,
                   .sum_entropy = 4,
                   .sum_relative_entropy = 1,
                   .min_entropy = 5,
                   .sum_spread = 8,
                   .n_saturated = 6,
                   .n_rows = 7};
  const AttentionStats b{.max_logit = 2,
                         .min_logit = -1,
                         .sum_squares = 20,
                         .n_logits = 30,
                         .sum_entropy = 40,
                         .sum_relative_entropy = 10,
                         .min_entropy = 0.5,
                         .sum_spread = 80,
                         .n_saturated = 60,
                         .n_rows = 70};
  merge(a, b);
  expect_same(a, {.max_logit = 2,
                  .min_logit = -3,
                  .sum_squares = 22,
                  .n_logits = 33,
                  .sum_entropy = 44,
                  .sum_relative_entropy = 11,
                  .min_entropy = 0.5,
                  .sum_spread = 88,
                  .n_saturated = 66,
                  .n_rows = 77});
}

TEST(Attention, ScratchGrowsLinearlyWithTheKeys) {
  for (bool backward : {false, true}) {
    AttentionSpec spec{.tq = 1000, .tk = 1000, .d = 64};
    const size_t small = attention_scratch_bytes(spec, backward);
    spec.tq = 100000;
    EXPECT_EQ(attention_scratch_bytes(spec, backward), small);
    spec.tk = 4000;
    EXPECT_LT(attention_scratch_bytes(spec, backward), 4 * small);
  }
}

// The reference itself: its gradients by central differences of sum(d_o o).
double loss(const AttentionCase& c, const AttentionInputs& in) {
  const auto o = AttentionReference<double>(c, in).run().o;
  double sum = 0.0;
  for (size_t i = 0; i < o.size(); ++i) sum += o[i] * in.d_o[i];
  return sum;
}

TEST(AttentionReference, GradientsAreSlopes) {
  std::vector<AttentionCase> cases;
  for (float p : {1.0F, 1.5F, 2.0F, 3.14159265F}) cases.push_back({.name = "slope", .p = p});
  cases.push_back({.name = "slope", .norm = QkNorm::rms, .rope = true, .affine = true, .soft_cap = 3.0F});
  cases.push_back({.name = "slope",
                   .norm = QkNorm::layer,
                   .rope = true,
                   .order = QkOrder::after_rope,
                   .pairing = RopePairing::half,
                   .affine = true,
                   .gain = Gain::channel,
                   .dropout = 0.3F,
                   .row_scale = true});
  for (AttentionCase& c : cases) {
    c.tq = 5, c.tk = 6, c.d = 8, c.group = 2, c.kv_len = 5;
    AttentionInputs in = make_inputs(c);
    const auto r = AttentionReference<double>(c, in).run();
    const auto check = [&](std::vector<float>& x, const std::vector<double>& gradient, const char* name) {
      for (size_t i = 0; i < x.size(); i += 7) {
        const float middle = x[i], step = 1e-3F;
        x[i] = middle + step;
        const double above = x[i], high = loss(c, in);
        x[i] = middle - step;
        const double below = x[i], low = loss(c, in);
        x[i] = middle;
        const double slope = (high - low) / (above - below);
        EXPECT_NEAR(gradient[i], slope, 1e-4 * (1.0 + std::abs(slope))) << label(c) << " " << name << " " << i;
      }
    };
    check(in.q, r.dq, "q");
    check(in.k, r.dk, "k");
    check(in.v, r.dv, "v");
    check(in.gain, r.d_gain, "gain");
    check(in.q_gain, r.q_gain, "q_gain");
    check(in.q_bias, r.q_bias, "q_bias");
    check(in.k_gain, r.k_gain, "k_gain");
    check(in.k_bias, r.k_bias, "k_bias");
    if (c.norm != QkNorm::lp) continue;
    const double step = 1e-3;
    AttentionInputs up = in, down = in;
    up.p += static_cast<float>(step);
    down.p -= static_cast<float>(step);
    const double slope = (loss(c, up) - loss(c, down)) / (static_cast<double>(up.p) - static_cast<double>(down.p));
    EXPECT_NEAR(r.dp[0] + r.dp[1], slope, 1e-4 * (1.0 + std::abs(slope))) << label(c) << " p";
  }
}

}  // namespace
}  // namespace normlab::testing
