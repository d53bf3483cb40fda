// Text: everything goes through std::to_chars and std::from_chars, which no locale can change.
#include "normlab/base/text.h"

#include <algorithm>
#include <cmath>

namespace normlab {
namespace {

constexpr int longest_double = 330;  // digits of the largest double in fixed notation, sign and point

std::string non_finite(double value) { return std::isnan(value) ? "nan" : value < 0 ? "-inf" : "inf"; }

std::string format(double value, std::chars_format form, int precision) {
  std::string out(longest_double + static_cast<size_t>(precision), '\0');
  const auto end = std::to_chars(out.data(), out.data() + out.size(), value, form, precision).ptr;
  out.resize(static_cast<size_t>(end - out.data()));
  return out;
}

// The decimal exponent of the value once rounded to so many significant digits: 999.9 to three digits has 3.
int rounded_exponent(double value, int digits) {
  const std::string text = format(value, std::chars_format::scientific, digits - 1);
  const size_t e = text.rfind('e');
  const size_t start = text[e + 1] == '+' ? e + 2 : e + 1;
  return static_cast<int>(*parse_integer(std::string_view(text).substr(start)));
}

// Edit distance in which swapping two neighbouring letters counts as one edit.
size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::vector<size_t>> cost(a.size() + 1, std::vector<size_t>(b.size() + 1));
  for (size_t i = 0; i <= a.size(); ++i) cost[i][0] = i;
  for (size_t j = 0; j <= b.size(); ++j) cost[0][j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t replaced = cost[i - 1][j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      cost[i][j] = std::min({cost[i - 1][j] + 1, cost[i][j - 1] + 1, replaced});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        cost[i][j] = std::min(cost[i][j], cost[i - 2][j - 2] + 1);
      }
    }
  }
  return cost[a.size()][b.size()];
}

template <class Number>
std::optional<Number> parse_whole(std::string_view text) {
  Number value{};
  const char* end = text.data() + text.size();
  const auto [stop, problem] = std::from_chars(text.data(), end, value);
  if (problem != std::errc{} || stop != end) return std::nullopt;
  return value;
}

}  // namespace

std::string format_number(double value) {
  if (!std::isfinite(value)) return non_finite(value);
  const double size = std::abs(value);
  const bool plain = size == 0 || (size >= 1e-4 && size < 1e16);
  const auto form = plain ? std::chars_format::fixed : std::chars_format::scientific;
  char digits[32];
  return {digits, std::to_chars(digits, digits + sizeof digits, value, form).ptr};
}

std::string fixed(double value, int decimals) {
  if (!std::isfinite(value)) return non_finite(value);
  std::string out = format(value, std::chars_format::fixed, std::max(decimals, 0));
  const bool negative_zero = out.front() == '-' && out.find_first_not_of("-0.") == std::string::npos;
  return negative_zero ? out.substr(1) : out;
}

std::string significant(double value, int digits) {
  if (!std::isfinite(value)) return non_finite(value);
  digits = std::max(digits, 1);
  const int exponent = rounded_exponent(value, digits);
  const bool plain = exponent >= -4 && exponent < std::max(digits, 6);
  return plain ? fixed(value, digits - 1 - exponent) : format(value, std::chars_format::scientific, digits - 1);
}

std::string si(double value) {
  constexpr std::string_view prefixes = "kMGTPE";
  if (!std::isfinite(value)) return non_finite(value);
  if (value == 0) return "0";
  const int exponent = rounded_exponent(value, 3);
  const auto group = static_cast<size_t>(std::max(exponent, 0) / 3);
  if (group == 0 || group > prefixes.size()) return significant(value, 3);
  const double scaled = value / std::pow(10.0, static_cast<double>(3 * group));
  return fixed(scaled, 2 - exponent % 3) + prefixes[group - 1];
}

std::string clock_time(double seconds) {
  constexpr double longest = 3.6e12;  // a billion hours; beyond it, and for nan, the time is not known
  if (!(seconds >= 0 && seconds < longest)) return "-:--:--";
  const long long total = std::llround(seconds), hours_of_day = 24;
  if (total >= hours_of_day * 3600)
    return concat(total / 3600 / hours_of_day, " d ", total / 3600 % hours_of_day, " h");
  const auto two_digits = [](long long value) { return concat(value < 10 ? "0" : "", value); };
  return concat(total / 3600, ":", two_digits(total / 60 % 60), ":", two_digits(total % 60));
}

std::optional<double> parse_number(std::string_view text) {
  const auto value = parse_whole<double>(text);
  return value && std::isnan(*value) ? std::nullopt : value;
}

std::optional<long long> parse_integer(std::string_view text) { return parse_whole<long long>(text); }

std::string trim(std::string_view text) {
  constexpr std::string_view blanks = " \t\r\n\v\f";
  const size_t first = text.find_first_not_of(blanks);
  if (first == std::string_view::npos) return "";
  return std::string(text.substr(first, text.find_last_not_of(blanks) - first + 1));
}

std::vector<std::string> split(std::string_view text, char separator) {
  std::vector<std::string> parts;
  for (size_t start = 0; start != std::string_view::npos;) {
    const size_t end = text.find(separator, start);
    parts.emplace_back(text.substr(start, end - start));
    start = end == std::string_view::npos ? end : end + 1;
  }
  return parts;
}

std::string join(std::span<const std::string> parts, std::string_view separator) {
  std::string out;
  for (size_t i = 0; i < parts.size(); ++i) {
    if (i > 0) out += separator;
    out += parts[i];
  }
  return out;
}

std::string replace_all(std::string text, std::string_view from, std::string_view to) {
  if (from.empty()) return text;
  for (size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size())) {
    text.replace(at, from.size(), to);
  }
  return text;
}

std::optional<std::string> nearest(std::string_view name, std::span<const std::string> candidates) {
  size_t limit = name.size() <= 3 ? 1 : std::max<size_t>(2, name.size() / 3);
  std::optional<std::string> best;
  for (const std::string& candidate : candidates) {
    const size_t distance = edit_distance(name, candidate);
    if (distance > limit || (best && distance == limit)) continue;
    best = candidate;
    limit = distance;
  }
  return best;
}

}  // namespace normlab
