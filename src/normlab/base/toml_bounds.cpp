// Bounds on a TOML text: a scan that knows strings and comments, and counts the dots of each key.
#include "normlab/base/toml_bounds.h"

#include <algorithm>

#include "normlab/base/error.h"
#include "normlab/base/text.h"

namespace normlab {
namespace {

// Where the string that starts the text ends: past its closing quotes, or at the end of the text.
size_t string_length(std::string_view text) {
  const bool escapes = text[0] == '"';
  const std::string_view three = text.substr(0, 3);
  const bool is_long = three == "\"\"\"" || three == "'''";
  const std::string_view close = text.substr(0, is_long ? 3 : 1);
  size_t i = close.size();
  for (; i < text.size(); ++i) {
    if (escapes && text[i] == '\\')
      ++i;
    else if (text.substr(i).starts_with(close))
      return i + close.size();
    else if (!is_long && text[i] == '\n')
      return i;  // not closed: the parser says so
  }
  return std::min(i, text.size());
}

bool continues_key(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-' ||
         c == ' ' || c == '\t';
}

}  // namespace

void require_toml_within_bounds(std::string_view text, const std::string& name) {
  constexpr size_t largest = 64 << 20, most_parts = 50;
  if (text.size() > largest)
    throw UsageError(
        name, concat("is too large for a configuration; got ", text.size(), " bytes, expected at most ", largest, "."));
  size_t parts = 1, line = 1;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '#') {
      i = std::min(text.find('\n', i), text.size()) - 1;
    } else if (c == '"' || c == '\'') {
      const size_t length = string_length(text.substr(i));
      line += static_cast<size_t>(std::count(text.begin() + static_cast<std::ptrdiff_t>(i),
                                             text.begin() + static_cast<std::ptrdiff_t>(i + length), '\n'));
      i += length - 1;
    } else if (c == '.') {
      if (++parts > most_parts)
        throw UsageError(concat(name, ":", line), concat("a key has more than ", most_parts, " parts."));
    } else if (!continues_key(c)) {
      parts = 1;
      line += c == '\n';
    }
  }
}

}  // namespace normlab
