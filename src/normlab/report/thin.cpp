// Thinning of curves to what a screen can show.
#include "normlab/report/thin.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

namespace normlab {
namespace {

// The lowest, the highest and the first value that is not finite, in the order of their places, without repeats.
void keep_extremes(std::span<const double> values, std::size_t first, std::size_t last,
                   std::vector<std::size_t>& kept) {
  constexpr auto none = static_cast<std::size_t>(-1);
  std::size_t lowest = none, highest = none, missing = none;
  for (std::size_t i = first; i < last; ++i) {
    if (!std::isfinite(values[i])) {
      if (missing == none) missing = i;
      continue;
    }
    if (lowest == none || values[i] < values[lowest]) lowest = i;
    if (highest == none || values[i] > values[highest]) highest = i;
  }
  std::array<std::size_t, 3> found{lowest, highest, missing};
  std::sort(found.begin(), found.end());
  for (const std::size_t place : found) {
    if (place != none && (kept.empty() || kept.back() != place)) kept.push_back(place);
  }
}

}  // namespace

std::vector<std::size_t> thin(std::span<const double> values, std::size_t max_points) {
  const std::size_t count = values.size();
  max_points = std::max<std::size_t>(max_points, 5);
  std::vector<std::size_t> kept;
  if (count <= max_points) {
    kept.resize(count);
    std::iota(kept.begin(), kept.end(), std::size_t{0});
    return kept;
  }
  const bool gaps = !std::all_of(values.begin(), values.end(), [](double value) { return std::isfinite(value); });
  const std::size_t inner = count - 2, stretches = (max_points - 2) / (gaps ? 3 : 2);
  kept.push_back(0);
  for (std::size_t i = 0; i < stretches; ++i) {
    keep_extremes(values, 1 + i * inner / stretches, 1 + (i + 1) * inner / stretches, kept);
  }
  kept.push_back(count - 1);
  return kept;
}

}  // namespace normlab
