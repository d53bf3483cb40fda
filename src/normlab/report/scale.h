// Scales: from data to pixels, with round ticks and their labels, and units that keep the labels short.
#pragma once

#include <limits>
#include <string>
#include <string_view>
#include <vector>

namespace normlab {

// Not NaN, not infinite, and not so large that differences overflow: a value that has a place on an axis.
bool drawable(double value);

struct Extent {
  double low = std::numeric_limits<double>::infinity();
  double high = -std::numeric_limits<double>::infinity();
  void include(double value);  // ignores what is not drawable
  bool empty() const { return !(low <= high); }
};

// The range with some air around it; never crosses zero when the data does not, never empty.
Extent padded(Extent data, double share, bool log = false);

struct Scale {
  Extent domain;
  double start = 0, end = 1;  // pixels of domain.low and domain.high
  bool log = false;
  double operator()(double value) const;
};

// Round numbers inside the domain, about as many as wanted.
std::vector<double> ticks(Extent domain, bool log, int wanted);

// 0, 0.5, 1; 5,000; with a true minus sign. Linear ticks get the same number of decimals.
std::vector<std::string> tick_labels(const std::vector<double>& ticks, bool log);

std::string with_minus(std::string text);               // "-0.02" with the minus sign of typography
std::string signed_number(double value, int decimals);  // +0.021, -0.021 with a true minus sign

// Decimals of an estimate whose interval has this half-width: two digits of the half-width, no more.
int supported_decimals(double half_width);

// At least `least` decimals, and more where an end of the interval would otherwise be rounded to 0: what excludes 0
// must look as if it did.
int interval_decimals(double low, double high, int least);

// Values on an axis are divided by `divisor`, and its title says `name`.
struct Unit {
  double divisor;
  std::string_view name;
};
Unit time_unit(double longest_seconds);  // s, min or h
Unit count_unit(double largest);         // nothing, thousands, millions or billions

}  // namespace normlab
