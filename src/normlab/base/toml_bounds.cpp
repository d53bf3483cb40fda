// Bounds on a TOML text: a scan that knows strings and comments, and counts the dots of each key. Non-ASCII characters
// are allowed only where toml++ never asks whether they are space: that question has undefined behaviour for most.
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

bool is_ascii(char c) { return static_cast<unsigned char>(c) < 0x80; }

// Whether a backslash, or the line break it skips, stands before a non-ASCII character.
bool escapes_non_ascii(std::string_view literal) {
  if (literal[0] != '"') return false;
  for (size_t i = literal.find('\\'); i < literal.size(); i = literal.find('\\', i + 2)) {
    const size_t next = literal.find_first_not_of(" \t\r\n", i + 1);
    if (next < literal.size() && !is_ascii(literal[next])) return true;
  }
  return false;
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
  const auto refuse = [&](const std::string& reason) { throw UsageError(concat(name, ":", line), reason); };
  for (size_t i = text.starts_with("\xEF\xBB\xBF") ? 3 : 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '#') {
      i = std::min(text.find('\n', i), text.size()) - 1;
    } else if (c == '"' || c == '\'') {
      const size_t length = string_length(text.substr(i));
      if (escapes_non_ascii(text.substr(i, length)))
        refuse("a backslash is followed by a character outside ASCII; write the text without that backslash.");
      line += static_cast<size_t>(std::count(text.begin() + static_cast<std::ptrdiff_t>(i),
                                             text.begin() + static_cast<std::ptrdiff_t>(i + length), '\n'));
      i += length - 1;
    } else if (c == '.') {
      if (++parts > most_parts) refuse(concat("a key has more than ", most_parts, " parts."));
    } else if (!is_ascii(c)) {
      refuse("a character outside ASCII is not in quotes; put the key or value in quotes.");
    } else if (!continues_key(c)) {
      parts = 1;
      line += c == '\n';
    }
  }
}

}  // namespace normlab
