// Text for people: lines as wide as a terminal, durations as they are said.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace normlab {

std::string spoken_time(double seconds);  // 40 s, 12 min, 3 h 20 min, 3 d 4 h

size_t columns_of(std::string_view text);  // characters of UTF-8, each one column wide
// Lines of at most so many columns, broken between words; a longer word has a line of its own.
std::vector<std::string> wrap(std::string_view text, size_t columns);

}  // namespace normlab
