// Text of any characters for property tests; plain, multi-byte, control characters and quotes.
#pragma once

#include <rapidcheck.h>

#include <string>

#include "normlab/data/utf8.h"

namespace normlab {

inline std::string any_text() {
  const auto characters = *rc::gen::container<std::u32string>(
      rc::gen::oneOf(rc::gen::inRange<char32_t>(0, 0x80), rc::gen::inRange<char32_t>(0x80, 0xd800),
                     rc::gen::inRange<char32_t>(0xe000, 0x110000)));
  std::string text;
  for (const char32_t character : characters) append_utf8(text, character);
  return text;
}

}  // namespace normlab
