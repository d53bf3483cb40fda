// Colours as the eye sees them: ramps at even distances, contrast.
#pragma once

#include <array>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace normlab {

// A path through OKLCH: lightness, chroma and hue in degrees at both ends and in the middle; the hue turns the shorter
// way round.
struct Ramp {
  std::array<double, 3> from, middle, to;
};

// `count` colours, as #rrggbb, along the ramp at equal distances as the eye sees them.
std::vector<std::string> even_colours(const Ramp& ramp, std::size_t count);

double contrast(std::string_view colour, std::string_view other);         // WCAG 2, from 1 to 21
double colour_distance(std::string_view colour, std::string_view other);  // in OKLab

}  // namespace normlab
