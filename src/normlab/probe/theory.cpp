#include "normlab/probe/theory.h"

#include <cmath>
#include <limits>

#include "normlab/ops/attention.h"
#include "normlab/ops/attention_stats.h"

namespace normlab {
namespace {

using torch::Tensor;

constexpr int64_t n_rows = 64, n_draws = 16;

TheoryPoint point(const LogitRule& rule, int64_t d) {
  const Tensor q = torch::randn({n_draws, n_rows, 1, d}, torch::kFloat64).requires_grad_(true);
  const Tensor k = torch::randn({n_draws, n_rows, 1, d}, torch::kFloat64);
  AttentionCall call{.form = {.logit_scale = rule.scaled ? 1.0 / std::sqrt(static_cast<double>(d)) : 1.0},
                     .causal = false};
  AttentionWeights weights;
  if (rule.p > 0.0) {
    call.form.qk = QkNorm::lp, call.form.p = rule.p;
    weights.gain = torch::full({1}, rule.gain, torch::kFloat64);
  }
  const Tensor logits =
      attention_logits(normalise_queries(q, call, weights, 0), normalise_keys(k, call, weights, 0), call);
  (logits.softmax(-1) * torch::randn_like(logits)).sum().backward();
  AttentionStats stats;
  for (int64_t i = 0; i < n_draws; ++i) merge(stats, attention_stats(logits.detach()[i])[0]);
  const auto rows = static_cast<double>(stats.n_rows);
  return {.d_head = d,
          .logit_std = logits.detach().std().item<double>(),
          .frobenius = logits.detach().norm().item<double>() / std::sqrt(static_cast<double>(n_draws)),
          .max_logit = logits.detach().abs().max().item<double>(),
          .bound = rule.p > 0.0 ? logit_bound(rule.p, rule.gain, d) : std::numeric_limits<double>::infinity(),
          .relative_entropy = stats.sum_relative_entropy / rows,
          .saturated = static_cast<double>(stats.n_saturated) / rows,
          .grad_q = q.grad().norm(2, -1).flatten().median().item<double>()};
}

}  // namespace

std::vector<LogitRule> logit_rules() {
  constexpr double gain = 12.0;  // near log2(L^2 - L) for L = 64
  return {{"q.k", false, 0.0, 1.0},
          {"q.k / sqrt(d)", true, 0.0, 1.0},
          {"12 cos(q, k)", false, 2.0, gain},
          {"12 q.k, L3 norm 1", false, 3.0, gain}};
}

std::vector<TheoryPoint> theory_points(const LogitRule& rule, const std::vector<int64_t>& widths, uint64_t seed) {
  torch::manual_seed(seed);
  std::vector<TheoryPoint> points;
  for (const int64_t d : widths) points.push_back(point(rule, d));
  return points;
}

double logit_bound(double p, double gain, int64_t d) {
  return p <= 2.0 ? gain : gain * std::pow(static_cast<double>(d), 1.0 - 2.0 / p);
}

}  // namespace normlab
