// The operator of the Python package against the attention of the program, bit-identical where both are fused.
#include "normlab/pytorch/attention_op.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "normlab/ops/attention.h"

namespace normlab {
namespace {

using torch::Tensor;

struct OpCase {
  const char* norm;
  double p;
  int64_t kv, gains;
  bool rope, learn_p;
  double soft_cap, dropout;
};

TEST(AttentionOp, IsTheProgramsAttentionBitForBit) {
  constexpr int64_t b = 2, t = 37, h = 4, d = 16;
  const OpCase cases[] = {{"lp", 2.5, 4, 1, false, false, 0.0, 0.0},   {"lp", 3.0, 2, 4, true, false, 0.0, 0.2},
                          {"rms", 2.0, 1, 0, true, false, 5.0, 0.0},   {"layer", 2.0, 4, h * d, false, false, 0.0, 0.0},
                          {"none", 2.0, 4, 0, false, false, 0.0, 0.1}, {"lp", 2.0, 4, 1, false, true, 0.0, 0.0}};
  for (const OpCase& c : cases) {
    SCOPED_TRACE(c.norm);
    torch::manual_seed(3);
    const Tensor qkv = torch::randn({b, t, h + 2 * c.kv, d}).requires_grad_(true), weight = torch::randn({b, t, h, d});
    const int64_t seed = 41;
    const RopeTable rope = make_rope(t, d, 100.0, RopePairing::half, torch::kFloat32);
    AttentionWeights weights;
    if (c.gains) weights.gain = torch::linspace(4, 6, c.gains).requires_grad_(true);
    if (c.learn_p) weights.p = torch::linspace(1.5, 3, c.kv).requires_grad_(true);
    const QkNorm norm = std::string(c.norm) == "lp"    ? QkNorm::lp
                        : std::string(c.norm) == "rms" ? QkNorm::rms
                        : *c.norm == 'l'               ? QkNorm::layer
                                                       : QkNorm::none;
    const AttentionCall call{
        .form = {.qk = norm, .p = c.p, .qk_eps = 1e-6, .logit_scale = 0.7, .soft_cap = c.soft_cap},
        .fused = true,
        .rope = c.rope ? &rope : nullptr,
        .dropout = {.rate = c.dropout, .key = dropout_key(stream_key(static_cast<uint64_t>(seed)))}};
    std::vector<AttentionStats> stats(b * h);
    const Tensor o = attention(qkv, h, call, weights, {.stats = stats.data()});
    (o * weight).sum().backward();

    const auto given = [](const Tensor& x) { return x.defined() ? std::optional(x.detach()) : std::nullopt; };
    AttentionArguments arguments{.gain = given(weights.gain),
                                 .learned_p = given(weights.p),
                                 .norm = c.norm,
                                 .p = c.p,
                                 .eps = 1e-6,
                                 .scale = 0.7,
                                 .soft_cap = c.soft_cap,
                                 .dropout_p = c.dropout};
    if (c.rope) arguments.cos = rope.cos, arguments.sin = rope.sin;
    if (c.dropout > 0.0) arguments.seed = torch::tensor({seed});
    // The layout of PyTorch, in its own memory order.
    const auto part = [&](const Tensor& x, int64_t first, int64_t n) {
      return x.detach().narrow(2, first, n).transpose(1, 2).contiguous();
    };
    const Tensor q = part(qkv, 0, h), k = part(qkv, h, c.kv), v = part(qkv, h + c.kv, c.kv);
    const auto [out, lse, counted] = attention_op(q, k, v, arguments, /*stats=*/true);
    EXPECT_TRUE(torch::equal(out.transpose(1, 2), o.detach()));
    EXPECT_EQ(counted.select(-1, 0).max().item<float>(),
              std::max_element(stats.begin(), stats.end(), [](const auto& x, const auto& y) {
                return x.max_logit < y.max_logit;
              })->max_logit);
    const auto [dq, dk, dv, d_gain, d_p] = attention_backward_op(weight.transpose(1, 2), q, k, v, out, lse, arguments);
    EXPECT_TRUE(torch::equal(torch::cat({dq, dk, dv}, 1).transpose(1, 2), qkv.grad()));
    if (c.gains) {
      EXPECT_TRUE(torch::equal(d_gain, weights.gain.grad()));
    }
    if (c.learn_p) {
      EXPECT_TRUE(torch::equal(d_p, weights.p.grad()));
    }
  }
}

}  // namespace
}  // namespace normlab
