// UTF-8: the Unicode standard's table of well-formed sequences (its table 3-7), walked.
#include "normlab/data/utf8.h"

#include <cstdint>

namespace normlab {

namespace {

// The lead bytes of one sequence length and the range of the second byte, which rules out overlong forms,
// surrogates and values beyond U+10FFFF; the bytes after it are 80..BF.
struct Lead {
  uint8_t first, last;
  int length;
  uint8_t second_min, second_max;
};

constexpr Lead leads[] = {
    {0xC2, 0xDF, 2, 0x80, 0xBF}, {0xE0, 0xE0, 3, 0xA0, 0xBF}, {0xE1, 0xEC, 3, 0x80, 0xBF}, {0xED, 0xED, 3, 0x80, 0x9F},
    {0xEE, 0xEF, 3, 0x80, 0xBF}, {0xF0, 0xF0, 4, 0x90, 0xBF}, {0xF1, 0xF3, 4, 0x80, 0xBF}, {0xF4, 0xF4, 4, 0x80, 0x8F},
};

Utf8Item decode_after(const Lead& lead, std::string_view text, size_t offset) {
  const auto byte = [&](size_t i) { return static_cast<uint8_t>(text[offset + i]); };
  const size_t length = static_cast<size_t>(lead.length);
  char32_t value = byte(0) & (0x7FU >> length);
  for (size_t i = 1; i < length; ++i) {
    if (offset + i == text.size()) return {.length = static_cast<int>(i), .state = Utf8State::truncated};
    const uint8_t low = i == 1 ? lead.second_min : 0x80;
    const uint8_t high = i == 1 ? lead.second_max : 0xBF;
    if (byte(i) < low || byte(i) > high) return {.length = static_cast<int>(i), .state = Utf8State::invalid};
    value = value << 6 | (byte(i) & 0x3FU);
  }
  return {.value = value, .length = lead.length, .state = Utf8State::valid};
}

}  // namespace

Utf8Item decode_utf8(std::string_view text, size_t offset) {
  const auto first = static_cast<uint8_t>(text[offset]);
  if (first < 0x80) return {.value = first, .length = 1, .state = Utf8State::valid};
  for (const Lead& lead : leads)
    if (first >= lead.first && first <= lead.last) return decode_after(lead, text, offset);
  return {};
}

std::optional<size_t> first_invalid_utf8(std::string_view text) {
  for (size_t offset = 0; offset < text.size();) {
    const Utf8Item item = decode_utf8(text, offset);
    if (item.state != Utf8State::valid) return offset;
    offset += static_cast<size_t>(item.length);
  }
  return std::nullopt;
}

void append_utf8(std::string& out, char32_t code_point) {
  if (code_point < 0x80) {
    out += static_cast<char>(code_point);
    return;
  }
  const int length = code_point < 0x800 ? 2 : code_point < 0x10000 ? 3 : 4;
  const auto lead_mark = static_cast<uint8_t>(0xF00 >> length);
  out += static_cast<char>(lead_mark | code_point >> (6 * (length - 1)));
  for (int i = length - 2; i >= 0; --i) out += static_cast<char>(0x80 | (code_point >> (6 * i) & 0x3F));
}

std::string describe_code_point(char32_t code_point) {
  std::string digits;
  for (int shift = 20; shift >= 0; shift -= 4)
    if (shift < 16 || code_point >> shift != 0) digits += "0123456789ABCDEF"[code_point >> shift & 0xF];
  const bool shows = code_point > 0x20 && (code_point < 0x7F || code_point > 0xA0) && code_point != 0xFEFF;
  if (!shows) return "U+" + digits;
  std::string out = "'";
  append_utf8(out, code_point);
  return out + "' (U+" + digits + ")";
}

}  // namespace normlab
