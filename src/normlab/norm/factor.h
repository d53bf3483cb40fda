// A factor that is a number, or follows from a model's sizes.
#pragma once

#include <optional>
#include <string>

namespace normlab {

struct Factor {
  enum class Rule {
    number,
    sqrt_d_head,
    inverse_sqrt_d_head,
    inverse_sqrt_d_model,
    inverse_n_layers,
    log2_pairs,  // log2(L^2 - L) for sequences of L tokens
    matched,     // log2_pairs, with the spread of logits that it gives p = 2
    init,
  };
  Rule rule = Rule::number;
  double number = 1.0;

  bool operator==(const Factor&) const = default;
  static std::optional<Factor> parse(const std::string& text);
  std::string text() const;
};

struct FactorSizes {
  int d_head = 0, d_model = 0;
  double init = 1.0;  // what the rule `init` stands for: the initial value of the parameter
  int n_layers = 1;
  int length = 0;            // L of log2_pairs
  double mean_square = 1.0;  // of q_hat, for `matched` (norm/scheme.h)
};
double value_of(const Factor& factor, FactorSizes sizes);

}  // namespace normlab
