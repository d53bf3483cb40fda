// The fused op against the composite one: values, every gradient, the split of the batch, the number of threads.
#include "ops/attention_fused.h"

#include <ATen/Parallel.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "base/error.h"

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
  AttentionForm form{.fused = fused, .scale = 0.8, .causal = c.causal};
  form.qk.norm = c.p == 0 ? QkNorm::none : QkNorm::lp;
  form.qk.p = c.p;
  form.dropout = {.rate = c.dropout, .key = {3, 4}, .first_row = 11};
  if (c.rope) form.qk.rope = &rope, form.qk.order = QkOrder::after_rope;
  if (c.gains) form.gain = torch::linspace(2, 3, c.gains).to(type).requires_grad_(true);
  if (c.learn_p) form.qk.learned_p = torch::linspace(1.5, 3, c.h).to(type).requires_grad_(true);
  const Tensor out = attention(qkv, c.h, form);
  (out * weight).sum().backward();
  return {out.detach(), qkv.grad(), form.gain.defined() ? form.gain.grad() : Tensor(),
          c.learn_p ? form.qk.learned_p.grad() : Tensor()};
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
  AttentionForm form{.fused = true};
  EXPECT_THROW(attention(torch::zeros({1, 4, 3, 8}, torch::kFloat64), 1, form), Error);
}

}  // namespace
}  // namespace normlab
