#include "normlab/norm/scheme.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "normlab/base/random.h"
#include "normlab/norm/nu.h"

namespace normlab {

double mean_square_after_lp(double p, int d) {
  // Fixed Gaussian draws: the closed form (d m_p)^(1/p) is off by several percent for p >= 4 and useless for inf.
  constexpr int n_draws = 4096;
  double total = 0.0;
  std::vector<double> x(static_cast<size_t>(d));
  for (int draw = 0; draw < n_draws; ++draw) {
    const uint64_t key = stream_key(0x6c70, draw);
    double largest = 0.0, squares = 0.0;
    for (int h = 0; h < d; ++h) {
      const double radius = std::sqrt(-2.0 * std::log1p(-draw_uniform(key, 2 * static_cast<uint64_t>(h))));
      const double angle = 2.0 * std::numbers::pi * draw_uniform(key, 2 * static_cast<uint64_t>(h) + 1);
      x[static_cast<size_t>(h)] = std::abs(radius * std::cos(angle));
      largest = std::max(largest, x[static_cast<size_t>(h)]);
      squares += x[static_cast<size_t>(h)] * x[static_cast<size_t>(h)];
    }
    double norm = largest;
    if (std::isfinite(p)) {
      double sum = 0.0;
      for (double value : x) sum += std::pow(value / largest, p);
      norm = largest * std::pow(sum, 1.0 / p);
    }
    total += squares / (norm * norm);
  }
  return total / n_draws;
}

double initial_gain(const NormScheme& scheme, GainSizes sizes) {
  FactorSizes of{.d_head = sizes.d_head, .length = sizes.length};
  if (scheme.gain_init.rule == Factor::Rule::matched)
    of.mean_square =
        mean_square_after_lp(scheme.p, scheme.scope == QkScope::head ? sizes.d_head : sizes.d_head * sizes.n_heads);
  return value_of(scheme.gain_init, of);
}

AttentionForm attention_form(const NormScheme& s, FactorSizes sizes) {
  double scale = value_of(s.logit_scale, sizes);
  // sqrt(d_model / d_head) for each of the q and k maps, where no norm takes them out. Those of the v and out maps,
  // sqrt(d_model / d_head) and sqrt(d_head / d_model), have the product 1.
  if (s.map_scale == MapScale::nu && s.qk == QkNorm::none) {
    const double nu = nu_of_map(sizes.d_model, sizes.d_head);
    scale = scale * nu * nu;
  }
  return {.qk = s.qk,
          .p = s.p,
          .qk_groups = s.qk_groups,
          .scope = s.scope,
          .order = s.order,
          .qk_eps = s.qk_eps,
          .logit_scale = scale,
          .row_scale = s.row_scale,
          .soft_cap = s.soft_cap};
}

double used_gain(const NormScheme& scheme, double stored, GainSizes sizes) {
  if (scheme.gain_form == GainForm::exp) return std::min(std::exp(stored), scheme.gain_max);
  if (scheme.stored_scale.rule == Factor::Rule::init) return stored;
  const double init = initial_gain(scheme, sizes);
  return stored * init / value_of(scheme.stored_scale, {sizes.d_head, sizes.d_model, init});
}

}  // namespace normlab
