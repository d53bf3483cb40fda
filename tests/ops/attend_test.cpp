// Blocks of query rows, masks and dropout of PyTorch's kernel, against the logits of a whole sequence.
#include <gtest/gtest.h>
#include <torch/autograd.h>

#include "normlab/ops/attention.h"
#include "normlab/ops/attention_stats.h"
#include "normlab/ops/checkpoint.h"

namespace normlab {
namespace {

using torch::Tensor;

struct Inputs {
  Tensor q, k, v;
};
Inputs inputs(int64_t t, int64_t s) {
  torch::manual_seed(4);
  const auto real = torch::TensorOptions().dtype(torch::kFloat64).requires_grad(true);
  return {torch::randn({2, t, 4, 6}, real), torch::randn({2, s, 2, 6}, real), torch::randn({2, s, 2, 6}, real)};
}

struct Results {
  Tensor out;
  std::vector<Tensor> gradients = {};
  std::vector<float> largest = {};
};
Results results(const Inputs& in, const AttentionCall& call, bool with_maxima) {
  MaxLogits maxima(4);
  Results all{.out = attend(in.q, in.k, in.v, call, with_maxima ? &maxima : nullptr)};
  torch::manual_seed(5);
  const Tensor weights = torch::randn(all.out.sizes(), torch::kFloat64);  // not randn_like: layouts differ
  all.gradients = torch::autograd::grad({(all.out * weights).sum()}, {in.q, in.k, in.v});
  for (size_t head = 0; head < 4; ++head) all.largest.push_back(maxima.of(head));
  return all;
}

void expect_equal(const Results& got, const Results& expected) {
  EXPECT_LT((got.out - expected.out).abs().max().item<double>(), 1e-12);
  for (size_t i = 0; i < 3; ++i)
    EXPECT_LT((got.gradients[i] - expected.gradients[i]).abs().max().item<double>(), 1e-12) << i;
  EXPECT_EQ(got.largest, expected.largest);
}

TEST(Attend, BlocksOfQueriesChangeNothing) {
  for (const auto& [t, s] : {std::pair(7, 7), std::pair(5, 9), std::pair(9, 5)})
    for (const bool causal : {true, false})
      for (const bool padded : {true, false})
        for (const int window : {0, 3}) {
          if (causal && t > s) continue;  // some queries would see no key
          const Inputs in = inputs(t, s);
          AttentionCall call{
              .form = {.logit_scale = 0.7, .row_scale = RowScale::log_n, .soft_cap = 2.0, .window = window},
              .causal = causal};
          if (padded) call.key_lengths_b = torch::tensor({s, s - 1});
          call.dropout = {.rate = 0.3, .key = dropout_key(stream_key(1, 2, 3)), .first_row = 40};
          const Results whole = results(in, call, /*with_maxima=*/true);
          for (const int64_t rows : {1, 2, 4}) {
            call.most_logits = rows * 2 * 4 * s;
            ASSERT_GT(query_blocks(in.q, s, call).size(), 1U);
            expect_equal(results(in, call, true), whole);
          }
        }
}

TEST(Attend, BlocksOfQueriesCountTheSame) {
  for (const bool causal : {true, false}) {
    const Inputs in = inputs(7, 9);
    AttentionCall call{.form = {.logit_scale = 0.7}, .causal = causal, .key_lengths_b = torch::tensor({9, 4})};
    std::vector<AttentionStats> whole(8), parts(8);
    count_attention(in.q, in.k, call, whole.data());
    call.most_logits = 2 * 4 * 9;
    count_attention(in.q, in.k, call, parts.data());
    for (size_t i = 0; i < whole.size(); ++i) {
      EXPECT_EQ(parts[i].max_logit, whole[i].max_logit);
      EXPECT_EQ(parts[i].min_logit, whole[i].min_logit);
      EXPECT_EQ(parts[i].n_logits, whole[i].n_logits);
      EXPECT_EQ(parts[i].n_rows, whole[i].n_rows);
      EXPECT_EQ(parts[i].min_entropy, whole[i].min_entropy);
      EXPECT_NEAR(parts[i].sum_entropy, whole[i].sum_entropy, 1e-12);
      EXPECT_NEAR(parts[i].sum_squares, whole[i].sum_squares, 1e-12);
    }
  }
}

// Of keys that are padding PyTorch's kernel is told by a mask; with a soft-cap far above them the logits are a tensor.
TEST(Attend, PaddingIsMaskedEitherWay) {
  for (const int64_t t : {1, 6}) {
    const Inputs in = inputs(t, 5);
    AttentionCall call{.form = {.logit_scale = 0.7}, .causal = false, .key_lengths_b = torch::tensor({5, 3})};
    const Results masked = results(in, call, false);
    call.form.soft_cap = 1e9;
    const Results plain = results(in, call, false);
    EXPECT_LT((masked.out - plain.out).abs().max().item<double>(), 1e-9);
    for (size_t i = 0; i < 3; ++i)
      EXPECT_LT((masked.gradients[i] - plain.gradients[i]).abs().max().item<double>(), 1e-9) << i;
  }
}

TEST(Attend, DropoutOfPytorchDependsOnItsKeyAlone) {
  const Inputs in = inputs(64, 64);
  const auto call = [](uint64_t step, int64_t first_row) {
    return AttentionCall{.dropout = {.rate = 0.25, .key = dropout_key(stream_key(1, step)), .first_row = first_row},
                         .sdpa_dropout = true};
  };
  const Results first = results(in, call(3, 0), false);
  torch::rand({7});  // what was drawn before does not matter
  EXPECT_TRUE(torch::equal(attend(in.q, in.k, in.v, call(3, 0)), first.out));
  EXPECT_FALSE(torch::equal(attend(in.q, in.k, in.v, call(4, 0)), first.out));
  EXPECT_FALSE(torch::equal(attend(in.q, in.k, in.v, call(3, 8)), first.out));
  // Computed again, with the same draws: the gradient of the same function.
  const auto again = checkpoint({in.q, in.k, in.v}, [&](const std::vector<Tensor>& x, bool) {
    return std::vector<Tensor>{attend(x[0], x[1], x[2], call(3, 0))};
  });
  torch::manual_seed(5);
  const Tensor weights = torch::randn(again[0].sizes(), torch::kFloat64);
  const auto gradients = torch::autograd::grad({(again[0] * weights).sum()}, {in.q, in.k, in.v});
  for (size_t i = 0; i < 3; ++i) EXPECT_TRUE(torch::equal(gradients[i], first.gradients[i])) << i;
  // Over many keys the mean stays: a first value of 1 everywhere comes out near 1.
  const Tensor ones = torch::ones_like(in.v);
  EXPECT_NEAR(attend(in.q, in.k, ones, call(3, 0)).mean().item<double>(), 1.0, 0.05);
}

}  // namespace
}  // namespace normlab
