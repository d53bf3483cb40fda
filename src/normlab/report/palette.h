// Colours, dashes and markers: Okabe-Ito for categories, an even ramp for ordered values, each for light and dark.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace normlab {

// One colour on paper and one on a dark screen, as #rrggbb.
struct Tone {
  std::string light, dark;
};

enum class Marker { circle, square, diamond, triangle, cross, wedge, bar };

struct Style {
  Tone tone;
  std::string_view dash;  // a stroke-dasharray, empty for a solid line
  Marker marker = Marker::circle;
  bool baseline = false;  // black or white, thicker
};

// Styles for `count` categories, or for `count` ordered values: neighbours get neighbouring colours. The baseline keeps
// its place in the order but is drawn black or white.
std::vector<Style> category_styles(std::size_t count, std::optional<std::size_t> baseline = {});
std::vector<Style> ordered_styles(std::size_t count, std::optional<std::size_t> baseline = {});

// A sequential ramp for heat maps, from nearly the background to strong.
std::vector<Tone> heat_tones(std::size_t count);

// Path data of a marker of about the area of a circle of that radius.
std::string marker_path(Marker marker, double x, double y, double radius);

inline constexpr std::string_view paper_light = "#ffffff", paper_dark = "#14171c";

}  // namespace normlab
