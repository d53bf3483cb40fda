#include "norm/scheme.h"

#include <cmath>
#include <numbers>

#include "base/error.h"
#include "base/random.h"
#include "base/text.h"

namespace normlab {

template <>
std::vector<std::string> enum_names<SublayerNorm>() {
  return {"layer", "rms", "scale", "none"};
}
template <>
std::vector<std::string> enum_names<NormPlacement>() {
  return {"pre", "post"};
}
template <>
std::vector<std::string> enum_names<EmbeddingNorm>() {
  return {"none", "fixnorm"};
}
template <>
std::vector<std::string> enum_names<QkNorm>() {
  return {"none", "lp"};
}
template <>
std::vector<std::string> enum_names<QkScope>() {
  return {"head", "all_heads"};
}
template <>
std::vector<std::string> enum_names<QkOrder>() {
  return {"before_rope", "after_rope"};
}
template <>
std::vector<std::string> enum_names<GainSharing>() {
  return {"none", "model", "layer", "head", "channel"};
}
template <>
std::vector<std::string> enum_names<PSharing>() {
  return {"layer", "head"};
}
template <>
std::vector<std::string> enum_names<LogitScale>() {
  return {"1/sqrt(d_head)", "1"};
}

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
  return number(value);
}

void list_fields(NormScheme& s, FieldList& list) {
  list.section("norm");
  list.text("scheme", s.name, "row of the catalogue; the keys below override its answers (`normlab schemes`)");
  list.choice("sublayer", s.sublayer, "norm of the residual stream around each sublayer");
  list.choice("placement", s.placement, "pre: norm(x) enters the branch; post: norm(x + branch)");
  list.real("sublayer_eps", s.sublayer_eps, {.min = 0.0, .max = 1.0}, "epsilon of the sublayer norm");
  list.choice("embedding", s.embedding, "fixnorm: unit rows, times sqrt(d_model) at the input only");
  list.choice("qk", s.qk, "normalisation of queries and keys");
  list.real("p", s.p, {.min = 0.0, .open_min = true}, "p of the Lp norm, inf included");
  list.flag("learn_p", s.learn_p, "learn p, as 1 + softplus(r); p is then the initial value");
  list.choice("p_sharing", s.p_sharing, "a learned p for each layer or each head");
  list.choice("scope", s.scope, "one norm over a head, or over all heads together");
  list.choice("order", s.order, "normalise before or after the rotation of RoPE");
  list.real("qk_eps", s.qk_eps, {.min = 1e-30, .max = 1.0}, "x_hat = x / max(||x||_p, qk_eps)");
  list.choice("gain", s.gain, "who shares one gain of the logits");
  list.custom(
      "gain_init", "initial gain", "a number, log2(L^2-L), sqrt(d_head) or matched",
      [&s] { return s.gain_init.text(); },
      [&s](const std::string& text) {
        const auto parsed = GainInit::parse(text);
        if (parsed) s.gain_init = *parsed;
        return parsed.has_value();
      });
  list.flag("learn_gain", s.learn_gain, "train the gain, or keep its initial value");
  list.choice("logit_scale", s.logit_scale, "fixed factor of the logits");
}

void check(const NormScheme& s) {
  if (s.learn_p && s.qk != QkNorm::lp)
    throw UsageError("norm.learn_p",
                     "there is no p to learn without an Lp norm. Set norm.qk=lp or norm.learn_p=false.");
  if (s.learn_p && !(s.p > 1.0 && std::isfinite(s.p)))
    throw UsageError("norm.p", str("a learned p is 1 + softplus(r), so it starts above 1 and finite; got ", s.p, "."));
  if (s.gain_init.rule == GainInit::Rule::matched && s.qk != QkNorm::lp)
    throw UsageError("norm.gain_init", "matched compares Lp norms; it needs norm.qk=lp.");
  if (s.sublayer == SublayerNorm::none && s.placement == NormPlacement::post)
    throw UsageError("norm.placement", "post places a sublayer norm, but norm.sublayer is none.");
}

double mean_square_after_lp(double p, int d) {
  // Fixed Gaussian draws: the closed form (d m_p)^(1/p) is off by several per cent for p >= 4 and useless for inf.
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

}  // namespace normlab
