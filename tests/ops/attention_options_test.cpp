// What schemes may ask of attention, against loops over plain numbers.
#include <gtest/gtest.h>

#include <cmath>

#include "gradient_check.h"
#include "normlab/ops/attention.h"

namespace normlab {
namespace {

using Row = std::vector<double>;
using torch::Tensor;

constexpr int64_t t = 5, h = 2, d = 4;
constexpr double eps = 1e-3;

Tensor sample() {
  torch::manual_seed(5);
  return torch::randn({1, t, 3 * h, d}, torch::kFloat64);
}

Row row_of(const Tensor& qkv, int64_t position, int64_t head) {
  const Tensor row = qkv[0][position][head].contiguous();
  return {row.data_ptr<double>(), row.data_ptr<double>() + d};
}

double mean_square(const Row& x) {
  double sum = 0.0;
  for (double value : x) sum += value * value;
  return sum / static_cast<double>(x.size());
}

// softmax(logit(q_hat, k_hat, number of visible keys)) v with every row through `norm`.
template <class Norm, class Logit>
Tensor by_loops(const Tensor& qkv, const Norm& norm, const Logit& logit, int64_t window = t) {
  const Tensor out = torch::zeros({1, t, h, d}, torch::kFloat64);
  for (int64_t head = 0; head < h; ++head)
    for (int64_t i = 0; i < t; ++i) {
      const Row q = norm(row_of(qkv, i, head));
      Row weight;
      double total = 0.0;
      const int64_t first = std::max<int64_t>(0, i + 1 - window);
      for (int64_t j = first; j <= i; ++j) {
        const Row k = norm(row_of(qkv, j, h + head));
        double dot = 0.0;
        for (size_t c = 0; c < d; ++c) dot += q[c] * k[c];
        weight.push_back(std::exp(logit(dot, static_cast<double>(i + 1 - first))));
        total += weight.back();
      }
      for (int64_t j = first; j <= i; ++j)
        out[0][i][head] += qkv[0][j][2 * h + head] * (weight[static_cast<size_t>(j - first)] / total);
    }
  return out;
}

void expect_same(const AttentionForm& form, const Tensor& expected, const AttentionWeights& weights = {}) {
  EXPECT_LT((attention(sample(), h, {.form = form}, weights) - expected).abs().max().item<double>(), 1e-12);
}

const auto as_it_is = [](const Row& x) { return x; };
const auto plain_logit = [](double dot, double) { return 0.7 * dot; };

TEST(AttentionOptions, RmsNorm) {
  const AttentionForm form{.qk = QkNorm::rms, .qk_eps = eps, .logit_scale = 0.7};
  expect_same(form, by_loops(
                        sample(),
                        [](Row x) {
                          const double scale = 1.0 / std::sqrt(mean_square(x) + eps);
                          for (double& value : x) value *= scale;
                          return x;
                        },
                        plain_logit));
}

TEST(AttentionOptions, LayerNormWithGainsAndBiases) {
  const AttentionForm form{.qk = QkNorm::layer, .qk_eps = eps, .logit_scale = 0.7};
  const Tensor weight = torch::linspace(0.5, 2.0, d, torch::kFloat64),
               bias = torch::linspace(-1, 1, d, torch::kFloat64);
  const QkAffineTensors affine{.weight = weight, .bias = bias};
  expect_same(form,
              by_loops(
                  sample(),
                  [&](Row x) {
                    double mean = 0.0;
                    for (double value : x) mean += value / d;
                    for (double& value : x) value -= mean;
                    const double scale = 1.0 / std::sqrt(mean_square(x) + eps);
                    for (size_t c = 0; c < d; ++c)
                      x[c] = x[c] * scale * weight.data_ptr<double>()[c] + bias.data_ptr<double>()[c];
                    return x;
                  },
                  plain_logit),
              {.q_affine = affine, .k_affine = affine});
}

TEST(AttentionOptions, GroupsOfChannels) {
  const AttentionForm form{.qk = QkNorm::lp, .p = 2.0, .qk_groups = 2, .logit_scale = 0.7};
  expect_same(form, by_loops(
                        sample(),
                        [](Row x) {
                          for (size_t first : {0U, 2U}) {
                            const double norm = std::hypot(x[first], x[first + 1]);
                            x[first] /= norm, x[first + 1] /= norm;
                          }
                          return x;
                        },
                        plain_logit));
}

TEST(AttentionOptions, SoftCapAndLogN) {
  const AttentionForm form{.logit_scale = 0.7, .row_scale = RowScale::log_n, .soft_cap = 1.5};
  expect_same(form, by_loops(sample(), as_it_is,
                             [](double dot, double n) { return 1.5 * std::tanh(0.7 * std::log(n) * dot / 1.5); }));
}

TEST(AttentionOptions, Window) {
  for (const int window : {1, 2, 3, 5, 9})
    for (const RowScale scale : {RowScale::one, RowScale::log_n}) {
      const AttentionForm form{.logit_scale = 0.7, .row_scale = scale, .window = window};
      expect_same(
          form, by_loops(
                    sample(), as_it_is,
                    [&](double dot, double n) { return scale == RowScale::one ? 0.7 * dot : 0.7 * std::log(n) * dot; },
                    window));
    }
}

TEST(AttentionOptions, TheLargestLogitOfEachHead) {
  MaxLogits max_logits(h);
  const Tensor qkv = sample();
  attention(qkv, h, {.form = {.logit_scale = 0.7}}, {}, {.max_logits = &max_logits});
  for (int64_t head = 0; head < h; ++head) {
    double largest = -1e30;
    for (int64_t i = 0; i < t; ++i)
      for (int64_t j = 0; j <= i; ++j)
        largest = std::max(largest, 0.7 * (qkv[0][i][head] * qkv[0][j][h + head]).sum().item<double>());
    EXPECT_NEAR(max_logits.of(static_cast<size_t>(head)), largest, 1e-6);
  }
  max_logits.reset();
  EXPECT_LT(max_logits.of(0), -1e30F);
}

TEST(AttentionOptions, Gradients) {
  const Tensor weight = torch::linspace(0.5, 2.0, h * d, torch::kFloat64),
               bias = torch::linspace(-1, 1, d, torch::kFloat64);
  const RopeTable rope = make_rope(t, d, 100.0, RopePairing::half, torch::kFloat64);
  for (const QkNorm norm : {QkNorm::none, QkNorm::rms, QkNorm::layer, QkNorm::lp})
    for (const QkOrder order : {QkOrder::before_rope, QkOrder::after_rope})
      expect_gradients(
          [&](const std::vector<Tensor>& in) {
            const AttentionForm form{.qk = norm,
                                     .p = 2.5,
                                     .qk_groups = norm == QkNorm::lp ? 2 : 1,
                                     .order = order,
                                     .qk_eps = eps,
                                     .logit_scale = 0.7,
                                     .row_scale = RowScale::log_n,
                                     .soft_cap = 1.5};
            return attention(in[0], h, {.form = form, .rope = &rope},
                             {.gain = in[1],
                              .q_affine = {.weight = in[1], .bias = in[2]},
                              .k_affine = {.weight = in[3], .bias = in[2]}});
          },
          {sample(), weight, bias, weight.flip(0)});
}

TEST(AttentionOptions, ZeroVectorsStayFinite) {
  for (const QkNorm norm : {QkNorm::rms, QkNorm::layer, QkNorm::lp}) {
    const AttentionForm form{.qk = norm, .qk_groups = norm == QkNorm::lp ? 2 : 1, .qk_eps = 1e-6};
    const Tensor qkv = torch::zeros({1, t, 3 * h, d}, torch::kFloat64).requires_grad_(true);
    attention(qkv, h, {.form = form}, {}).sum().backward();
    EXPECT_TRUE(torch::isfinite(qkv.grad()).all().item<bool>());
  }
}

}  // namespace
}  // namespace normlab
