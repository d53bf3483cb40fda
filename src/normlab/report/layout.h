// Layout of text in charts: how wide it is, where lines break, how labels keep clear of each other.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace normlab {

// An estimate in pixels for the wider of the usual system fonts, so that what is reserved is enough.
double text_width(std::string_view text, double size);

std::vector<std::string> wrap(std::string_view text, double width, double size);

// The text, or its start and its end around an ellipsis when it is wider than that: names often differ at the end.
std::string shortened(std::string_view text, double width, double size);

// Places at least `gap` apart and within [low, high], each as near to its wish as can be; the order is kept.
// The wishes must be sorted. When they do not all fit, the gap shrinks.
std::vector<double> spread(const std::vector<double>& wishes, double gap, double low, double high);

}  // namespace normlab
