#include "normlab/data/byte_characters.h"

#include "normlab/data/utf8.h"

namespace normlab {
namespace {

constexpr char32_t largest_character = 0x143;  // 256 + 67 bytes that do not print

}  // namespace

const std::array<char32_t, 256>& byte_characters() {
  static const std::array<char32_t, 256> table = [] {
    std::array<char32_t, 256> characters{};
    char32_t next = 0x100;
    for (char32_t byte = 0; byte < 256; ++byte) {
      const bool prints = (byte >= '!' && byte <= '~') || (byte >= 0xA1 && byte <= 0xAC) || byte >= 0xAE;
      characters[byte] = prints ? byte : next++;
    }
    return characters;
  }();
  return table;
}

std::string bytes_as_characters(std::string_view bytes) {
  std::string text;
  for (const char byte : bytes) append_utf8(text, byte_characters()[static_cast<uint8_t>(byte)]);
  return text;
}

std::optional<std::string> characters_as_bytes(std::string_view text) {
  static const std::array<int, largest_character + 1> byte_of = [] {
    std::array<int, largest_character + 1> bytes{};
    bytes.fill(-1);
    for (int byte = 0; byte < 256; ++byte) bytes[byte_characters()[static_cast<size_t>(byte)]] = byte;
    return bytes;
  }();
  std::string bytes;
  bool all = true;
  for_each_code_point(text, [&](char32_t c, size_t) {
    const int byte = c <= largest_character ? byte_of[c] : -1;
    all = all && byte >= 0;
    bytes += static_cast<char>(byte);
  });
  return all ? std::optional(bytes) : std::nullopt;
}

}  // namespace normlab
