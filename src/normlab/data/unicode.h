// Unicode properties that tokenisers ask for: white space, punctuation, symbols, numbers, letters, small letters.
#pragma once

#include <string>
#include <string_view>

namespace normlab {

// Python's str.isspace and str.split, which sacreBLEU and its users mean by white space.
bool is_space(char32_t c);

// The general categories P, S, N and L; everything else, unassigned code points included, is `other`.
enum class CharClass { punctuation, symbol, number, letter, other };
CharClass char_class(char32_t c);
bool is_currency(char32_t c);  // the category Sc

// Ill-formed sequences become U+FFFD.
std::u32string to_code_points(std::string_view text);
std::string to_utf8(std::u32string_view text);

// The text in small letters, as Python's str.lower: a sigma that ends a word becomes the final sigma.
std::string to_lower(std::string_view text);

}  // namespace normlab
