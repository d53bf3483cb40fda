#include "normlab/data/subword_decoder.h"

#include <nlohmann/json.hpp>

#include "normlab/base/error.h"
#include "normlab/base/text.h"
#include "normlab/data/byte_characters.h"

namespace normlab {
namespace {

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

// The byte of "<0x0A>", or -1.
int fallback_byte(std::string_view token) {
  if (token.size() != 6 || !token.starts_with("<0x") || token[5] != '>') return -1;
  const int high = hex_digit(token[3]), low = hex_digit(token[4]);
  return high < 0 || low < 0 ? -1 : 16 * high + low;
}

}  // namespace

SubwordDecoder::SubwordDecoder(const nlohmann::json& json, const std::string& where) {
  if (json.is_null()) throw DataError(where, "has no decoder; expected ByteLevel or those of SentencePiece.");
  add(json, where);
}

void SubwordDecoder::add(const nlohmann::json& json, const std::string& where) {
  const std::string type = json.at("type");
  if (byte_level_) throw DataError(where, concat("the decoder ", type, " after ByteLevel is not supported."));
  if (type == "Sequence") {
    for (const nlohmann::json& part : json.at("decoders")) add(part, where);
  } else if (type == "ByteLevel" && replacements_.empty()) {
    byte_level_ = true;
  } else if (type == "Replace" && !byte_fallback_ && json.at("pattern").contains("String")) {
    replacements_.emplace_back(json.at("pattern").at("String"), json.at("content"));
  } else if (type == "ByteFallback") {
    byte_fallback_ = true;
  } else if (type == "Fuse") {
    fused_ = true;
  } else if (type == "Strip" && fused_) {
    strip_ = json.at("content");
    strip_begin_ = json.at("start");
    strip_end_ = json.at("stop");
  } else if (type == "Metaspace" && replacements_.empty()) {
    replacements_.emplace_back(json.at("replacement"), " ");
    if (json.value("prepend_scheme", "always") != "never") dropped_in_first_ = json.at("replacement");
  } else {
    throw DataError(where, concat("the decoder ", type,
                                  " is not supported here; expected ByteLevel, Metaspace, or Replace, ByteFallback, "
                                  "Fuse and Strip in this order."));
  }
}

std::string SubwordDecoder::bytes_of(std::string_view token, bool first) const {
  std::string text(token);
  if (byte_level_) return characters_as_bytes(text).value_or(text);
  if (first && !dropped_in_first_.empty()) text = replace_all(text, dropped_in_first_, "");
  for (const auto& [from, to] : replacements_) text = replace_all(text, from, to);
  const int byte = byte_fallback_ ? fallback_byte(text) : -1;
  return byte < 0 ? text : std::string(1, static_cast<char>(byte));
}

std::string SubwordDecoder::stripped(std::string text) const {
  if (strip_.empty()) return text;
  for (size_t i = 0; i < strip_begin_ && text.starts_with(strip_); ++i) text.erase(0, strip_.size());
  for (size_t i = 0; i < strip_end_ && text.ends_with(strip_); ++i) text.erase(text.size() - strip_.size());
  return text;
}

}  // namespace normlab
