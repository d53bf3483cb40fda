// UTF-8: decoding, validation and encoding of code points.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace normlab {

inline constexpr char32_t replacement_character = 0xFFFD;
inline constexpr char32_t largest_code_point = 0x10FFFF;

enum class Utf8State { valid, truncated, invalid };

// What stands at an offset: a code point of `length` bytes, or the start of one that the end of the text or a wrong
// byte cuts off after `length` >= 1 bytes. `value` is U+FFFD unless the state is valid.
struct Utf8Item {
  char32_t value = replacement_character;
  int length = 1;
  Utf8State state = Utf8State::invalid;
};

Utf8Item decode_utf8(std::string_view text, size_t offset);  // requires offset < text.size()

// The byte offset at which the first ill-formed (or cut-off) sequence starts.
std::optional<size_t> first_invalid_utf8(std::string_view text);

void append_utf8(std::string& out, char32_t code_point);  // requires a code point, not a surrogate

// Calls visit(code_point, byte_offset) for each code point; an ill-formed sequence is visited as U+FFFD.
template <class Visit>
void for_each_code_point(std::string_view text, Visit visit) {
  for (size_t offset = 0; offset < text.size();) {
    const Utf8Item item = decode_utf8(text, offset);
    visit(item.value, offset);
    offset += static_cast<size_t>(item.length);
  }
}

// For messages: 'x' (U+0078), or only U+000A when the character would not show.
std::string describe_code_point(char32_t code_point);

}  // namespace normlab
