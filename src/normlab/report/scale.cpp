// Scales: from data to pixels, with round ticks and their labels, and units that keep the labels short.
#include "normlab/report/scale.h"

#include <algorithm>
#include <cmath>

#include "normlab/base/text.h"

namespace normlab {
namespace {

constexpr double largest_drawable = 1e100;
constexpr long most_ticks = 50;

// 1, 2 or 5 times a power of ten: the nearest by ratio to what gives the wanted number.
double round_step(double span, int wanted) {
  const double raw = span / wanted;
  const double power = std::pow(10.0, std::floor(std::log10(raw)));
  const double rest = raw / power;
  return power * (rest < std::sqrt(2.0) ? 1 : rest < std::sqrt(10.0) ? 2 : rest < std::sqrt(50.0) ? 5 : 10);
}

std::vector<double> linear_ticks(Extent domain, int wanted) {
  double step = round_step(domain.high - domain.low, wanted);
  // One tick says nothing about the scale: two at least.
  const auto count = [&] { return std::floor(domain.high / step + 1e-6) - std::ceil(domain.low / step - 1e-6) + 1; };
  for (int more = wanted + 1; count() < 2 && more < 5 * wanted; ++more)
    step = round_step(domain.high - domain.low, more);
  const double first = std::ceil(domain.low / step - 1e-6), last = std::floor(domain.high / step + 1e-6);
  std::vector<double> found;
  for (long i = 0; i < most_ticks && first + static_cast<double>(i) <= last; ++i) {
    found.push_back((first + static_cast<double>(i)) * step + 0.0);
  }
  return found;
}

std::vector<double> log_ticks(Extent domain, const std::vector<double>& factors, int every) {
  const int first = static_cast<int>(std::floor(std::log10(domain.low)));
  const int last = static_cast<int>(std::ceil(std::log10(domain.high)));
  std::vector<double> found;
  for (int exponent = first; exponent <= last; ++exponent) {
    if (exponent % every != 0) continue;
    for (const double factor : factors) {
      const double value = factor * std::pow(10.0, exponent);
      if (value >= domain.low * (1 - 1e-9) && value <= domain.high * (1 + 1e-9)) found.push_back(value);
    }
  }
  return found;
}

// How many decimals show the value without loss, at most nine.
int decimals_of(double value) {
  for (int decimals = 0; decimals < 9; ++decimals) {
    const double scaled = value * std::pow(10.0, decimals);
    if (std::abs(scaled - std::round(scaled)) < 1e-6 * std::max(1.0, std::abs(scaled))) return decimals;
  }
  return 9;
}

std::string with_thousands(std::string text) {
  const std::size_t start = text.front() == '-' ? 1 : 0;
  std::size_t at = std::min(text.find('.'), text.size());
  while (at > start + 3) text.insert(at -= 3, 1, ',');
  return text;
}

}  // namespace

bool drawable(double value) { return std::abs(value) < largest_drawable; }

void Extent::include(double value) {
  if (!drawable(value)) return;
  low = std::min(low, value);
  high = std::max(high, value);
}

Extent padded(Extent data, double share, bool log) {
  if (data.empty()) return log ? Extent{1, 10} : Extent{0, 1};
  if (log) {
    const double factor = data.high > data.low ? std::pow(data.high / data.low, share) : 2;
    return {data.low / factor, data.high * factor};
  }
  // A single value still needs an axis: as wide as a tenth of the value, or 1 around zero.
  const double least = data.low == 0 ? 1 : std::abs(data.low) * 0.05;
  const bool flat =
      data.high - data.low < 1e-9 * std::max(std::abs(data.low), std::abs(data.high)) || data.low == data.high;
  const double air = flat ? least : (data.high - data.low) * share;
  Extent out{data.low - air, data.high + air};
  if (data.low >= 0) {
    out.low = std::max(out.low, 0.0);
  } else if (data.high <= 0) {
    out.high = std::min(out.high, 0.0);
  }
  return out;
}

double Scale::operator()(double value) const {
  const double low = log ? std::log(domain.low) : domain.low, high = log ? std::log(domain.high) : domain.high;
  const double at = log ? std::log(std::max(value, std::numeric_limits<double>::min())) : value;
  const double share = std::clamp((at - low) / (high - low), -1.0, 2.0);  // far outside stays near: no huge numbers
  return start + share * (end - start);
}

std::vector<double> ticks(Extent domain, bool log, int wanted) {
  wanted = std::max(wanted, 2);
  if (!log) return linear_ticks(domain, wanted);
  // From the densest set to the sparsest: the first that is not crowded.
  static const std::vector<std::vector<double>> sets = {{1, 1.5, 2, 3, 4, 5, 7}, {1, 2, 3, 5}, {1, 2, 5}, {1, 3}};
  for (const std::vector<double>& factors : sets)
    if (auto found = log_ticks(domain, factors, 1); found.size() >= 4 && static_cast<int>(found.size()) <= wanted + 2)
      return found;
  const int decades = static_cast<int>(std::ceil(std::log10(domain.high / domain.low)));
  if (auto found = log_ticks(domain, {1}, std::max(1, decades / wanted)); found.size() >= 3) return found;
  return linear_ticks(domain, wanted);
}

std::vector<std::string> tick_labels(const std::vector<double>& ticks, bool log) {
  int decimals = 0;
  for (const double tick : ticks) decimals = std::max(decimals, decimals_of(tick));
  std::vector<std::string> labels;
  for (const double tick : ticks) {
    const double size = std::abs(tick);
    const bool plain = size == 0 || (size < 1e7 && decimals < 7);
    labels.push_back(plain ? with_thousands(fixed(tick, log ? decimals_of(tick) : decimals)) : significant(tick, 3));
    labels.back() = with_minus(labels.back());
  }
  return labels;
}

std::string with_minus(std::string text) { return replace_all(std::move(text), "-", "\xE2\x88\x92"); }

std::string signed_number(double value, int decimals) {
  const std::string text = fixed(value, decimals);
  return with_minus(value > 0 && text.find_first_not_of("0.") != std::string::npos ? "+" + text : text);
}

int supported_decimals(double half_width) {
  return half_width > 0 ? std::clamp(1 - static_cast<int>(std::floor(std::log10(half_width))), 1, 6) : 3;
}

int interval_decimals(double low, double high, int least) {
  constexpr int most = 12;
  const auto vanishes = [](double end, int decimals) {
    return end != 0 && std::fabs(end) < 0.5 * std::pow(10, -decimals);
  };
  int decimals = least;
  while (decimals < most && (vanishes(low, decimals) || vanishes(high, decimals))) ++decimals;
  return decimals;
}

Unit time_unit(double longest_seconds) {
  if (longest_seconds > 2 * 3600) return {3600, "h"};
  if (longest_seconds > 2 * 60) return {60, "min"};
  return {1, "s"};
}

Unit count_unit(double largest) {
  if (largest >= 1e9) return {1e9, "billions"};
  if (largest >= 1e6) return {1e6, "millions"};
  if (largest >= 2e4) return {1e3, "thousands"};
  return {1, ""};
}

}  // namespace normlab
