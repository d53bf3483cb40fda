#include "normlab/base/prose.h"

#include <algorithm>
#include <cmath>

#include "normlab/base/text.h"

namespace normlab {

std::string spoken_time(double seconds) {
  constexpr double minute = 60, hour = 3600, day = 24 * hour;
  if (!(seconds >= 0) || seconds >= day) return clock_time(seconds);
  if (seconds < minute - 0.5) return concat(std::llround(seconds), " s");
  const long long minutes = std::llround(seconds / minute);
  if (seconds < hour - minute / 2) return concat(minutes, " min");
  return concat(minutes / 60, " h", minutes % 60 > 0 ? concat(" ", minutes % 60, " min") : "");
}

size_t columns_of(std::string_view text) {
  return static_cast<size_t>(std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xC0) != 0x80; }));
}

std::vector<std::string> wrap(std::string_view text, size_t columns) {
  if (columns_of(text) <= columns) return {std::string(text)};  // with its spaces as they are
  std::vector<std::string> lines(1);
  for (const std::string& word : split(text, ' ')) {
    if (word.empty()) continue;
    std::string& line = lines.back();
    if (line.empty())
      line = word;
    else if (columns_of(line) + 1 + columns_of(word) <= columns)
      line += concat(' ', word);
    else
      lines.push_back(word);
  }
  return lines;
}

}  // namespace normlab
