// Decoders of a tokenizer.json: from tokens back to text.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace normlab {

class SubwordDecoder {
 public:
  SubwordDecoder() = default;
  // DataError, with `where`, for a kind that is not supported.
  SubwordDecoder(const nlohmann::json& json, const std::string& where);

  // The bytes of a token that follows others, or of the first one of a text.
  std::string bytes_of(std::string_view token, bool first) const;
  // What is taken off the beginning and the end of the whole.
  std::string stripped(std::string text) const;

 private:
  void add(const nlohmann::json& json, const std::string& where);

  bool byte_level_ = false, byte_fallback_ = false;
  std::vector<std::pair<std::string, std::string>> replacements_;
  std::string dropped_in_first_;  // what the first token loses (Metaspace)
  std::string strip_;
  size_t strip_begin_ = 0, strip_end_ = 0;
  bool fused_ = false;
};

}  // namespace normlab
