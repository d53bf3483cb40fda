#include "normlab/norm/factor.h"

#include <cmath>

#include "normlab/base/text.h"

namespace normlab {
namespace {

struct RuleName {
  Factor::Rule rule;
  const char* name;
};
constexpr RuleName rule_names[] = {
    {Factor::Rule::sqrt_d_head, "sqrt(d_head)"},
    {Factor::Rule::inverse_sqrt_d_head, "1/sqrt(d_head)"},
    {Factor::Rule::inverse_sqrt_d_model, "1/sqrt(d_model)"},
    {Factor::Rule::inverse_n_layers, "1/n_layers"},
    {Factor::Rule::log2_pairs, "log2(L^2-L)"},
    {Factor::Rule::matched, "matched"},
    {Factor::Rule::init, "init"},
};

double log2_pairs(double length) { return length > 1 ? std::log2(length * length - length) : 1.0; }

}  // namespace

std::optional<Factor> Factor::parse(const std::string& text) {
  for (const RuleName& row : rule_names)
    if (text == row.name) return Factor{row.rule};
  const auto value = parse_number(text);
  if (!value || !std::isfinite(*value)) return std::nullopt;
  return Factor{Rule::number, *value};
}

std::string Factor::text() const {
  for (const RuleName& row : rule_names)
    if (rule == row.rule) return row.name;
  return normlab::format_number(number);
}

double value_of(const Factor& factor, FactorSizes sizes) {
  switch (factor.rule) {
    case Factor::Rule::sqrt_d_head:
      return std::sqrt(double(sizes.d_head));
    case Factor::Rule::inverse_sqrt_d_head:
      return 1.0 / std::sqrt(double(sizes.d_head));
    case Factor::Rule::inverse_sqrt_d_model:
      return 1.0 / std::sqrt(double(sizes.d_model));
    case Factor::Rule::inverse_n_layers:
      return 1.0 / sizes.n_layers;
    case Factor::Rule::log2_pairs:
      return log2_pairs(sizes.length);
    case Factor::Rule::matched:
      return log2_pairs(sizes.length) / sizes.mean_square;
    case Factor::Rule::init:
      return sizes.init;
    case Factor::Rule::number:
      break;
  }
  return factor.number;
}

}  // namespace normlab
