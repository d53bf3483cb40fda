#include "normlab/norm/scheme.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "normlab/base/error.h"
#include "normlab/base/random.h"
#include "normlab/base/text.h"

namespace normlab {

std::optional<GainInit> GainInit::parse(const std::string& text) {
  if (text == "log2(L^2-L)") return GainInit{Rule::log2_pairs, 0.0};
  if (text == "sqrt(d_head)") return GainInit{Rule::sqrt_d_head, 0.0};
  if (text == "matched") return GainInit{Rule::matched, 0.0};
  const auto value = parse_number(text);
  if (!value || !std::isfinite(*value)) return std::nullopt;
  return GainInit{Rule::number, *value};
}

std::string GainInit::text() const {
  switch (rule) {
    case Rule::log2_pairs:
      return "log2(L^2-L)";
    case Rule::sqrt_d_head:
      return "sqrt(d_head)";
    case Rule::matched:
      return "matched";
    case Rule::number:
      break;
  }
  return format_number(value);
}

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
  const double length = sizes.length;
  const double log2_pairs = length > 1 ? std::log2(length * length - length) : 1.0;
  switch (scheme.gain_init.rule) {
    case GainInit::Rule::number:
      return scheme.gain_init.value;
    case GainInit::Rule::log2_pairs:
      return log2_pairs;
    case GainInit::Rule::sqrt_d_head:
      return std::sqrt(double(sizes.d_head));
    case GainInit::Rule::matched: {
      const int normalised = scheme.scope == QkScope::head ? sizes.d_head : sizes.d_head * sizes.n_heads;
      return log2_pairs / mean_square_after_lp(scheme.p, normalised);
    }
  }
  return 1.0;
}

double used_gain(const NormScheme& scheme, double stored, GainSizes sizes) {
  if (scheme.gain_form == GainForm::exp) return std::min(std::exp(stored), scheme.gain_max);
  if (scheme.stored_scale.rule == Factor::Rule::init) return stored;
  const double init = initial_gain(scheme, sizes);
  return stored * init / value_of(scheme.stored_scale, {sizes.d_head, sizes.d_model, init});
}

}  // namespace normlab
