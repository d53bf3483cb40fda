// Text: locale-independent formatting and parsing of numbers, joining, nearest names.
#pragma once

#include <charconv>
#include <concepts>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace normlab {

std::string format_number(double value);            // fewest digits that read back to the same double
std::string fixed(double value, int decimals);      // 1.8800
std::string significant(double value, int digits);  // 1.880, 0.01234, 1.2e-07
std::string si(double value);                       // 12.3k, 4.56M
std::string clock_time(double seconds);             // 0:02:05

std::optional<double> parse_number(std::string_view text);  // the whole text, also inf and -inf; not nan
std::optional<long long> parse_integer(std::string_view text);

std::string trim(std::string_view text);
std::vector<std::string> split(std::string_view text, char separator);
std::string join(std::span<const std::string> parts, std::string_view separator);
std::string replace_all(std::string text, std::string_view from, std::string_view to);

// The candidate closest to `name` by edit distance, or nothing when none is near.
std::optional<std::string> nearest(std::string_view name, std::span<const std::string> candidates);

inline void append(std::string& out, std::string_view part) { out += part; }
inline void append(std::string& out, char part) { out += part; }
template <std::integral T>
requires(!std::same_as<T, char> && !std::same_as<T, bool>) void append(std::string& out, T part) {
  char digits[24];
  out.append(digits, std::to_chars(digits, digits + sizeof digits, part).ptr);
}
// A template, because a plain bool parameter would win over string_view for a string literal.
template <std::same_as<bool> T>
void append(std::string& out, T part) {
  out += part ? "true" : "false";
}
inline void append(std::string& out, double part) { out += format_number(part); }

// concat("step ", 3, ": ", 1.5) == "step 3: 1.5"
template <class... Parts>
std::string concat(const Parts&... parts) {
  std::string out;
  (append(out, parts), ...);
  return out;
}

}  // namespace normlab
