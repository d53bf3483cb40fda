// Normalisers of a tokenizer.json, which change a text before it is split.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "normlab/data/text_pattern.h"

namespace normlab {

class SubwordNormalizer {
 public:
  SubwordNormalizer() = default;
  // DataError, with `where`, for a kind that is not supported.
  SubwordNormalizer(const nlohmann::json& json, const std::string& where);

  bool empty() const { return steps_.empty(); }
  // `continues`: the text continues what was normalised before, so nothing is put before it.
  std::string normalize(std::string text, bool continues = false) const;
  // Whether a text can be normalised in two parts, cut after a line feed and before an ASCII character.
  bool works_line_by_line() const;

 private:
  enum class Kind { nfc, nfd, nfkc, nfkd, prepend, replace };
  struct Step {
    Kind kind = Kind::nfc;
    std::string content = {};
    std::optional<TextPattern> pattern = {};
  };
  void add(const nlohmann::json& json, const std::string& where);

  std::vector<Step> steps_;
};

}  // namespace normlab
