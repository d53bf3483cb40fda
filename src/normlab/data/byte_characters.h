// The characters that stand for bytes in byte-level vocabularies, as GPT-2's encoder.py chose them.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>

namespace normlab {

// The character of each byte: itself where it prints in Latin-1, otherwise the next one from U+0100.
const std::array<char32_t, 256>& byte_characters();

std::string bytes_as_characters(std::string_view bytes);
// Nothing when a character stands for no byte.
std::optional<std::string> characters_as_bytes(std::string_view text);

}  // namespace normlab
