// Patterns of pre-tokenisers: regular expressions of Oniguruma, which the tokenizers package uses, run by PCRE2.
#pragma once

#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <utility>

namespace normlab {

class TextPattern {
 public:
  // DataError, with `where`, for an expression that means something else in PCRE2 or that matches the empty text.
  TextPattern(const std::string& expression, const std::string& where);
  static TextPattern literal(const std::string& text, const std::string& where);

  // The first match at or after `from`, as begin and end; begin is npos when there is none. `text` is valid UTF-8.
  // It depends on the text from there on only: expressions that look behind are refused.
  std::pair<size_t, size_t> find(std::string_view text, size_t from) const;
  const std::string& literal_text() const { return literal_; }  // empty: an expression

 private:
  struct Compiled;
  TextPattern() = default;
  std::shared_ptr<const Compiled> compiled_;  // null: a literal
  std::string literal_;
};

// {"String": text} or {"Regex": expression}, as tokenizer.json has it.
TextPattern pattern_from_json(const nlohmann::json& json, const std::string& where);

// The expression for PCRE2. \s and the classes \p{...} become what Oniguruma 6.9.10 means by them (Unicode 16).
std::string pcre2_expression(const std::string& expression, const std::string& where);

}  // namespace normlab
