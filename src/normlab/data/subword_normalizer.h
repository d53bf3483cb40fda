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
  std::string normalize(std::string text) const;

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
