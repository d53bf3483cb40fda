// Colours, dashes and markers: Okabe-Ito for categories, an even ramp for ordered values, each for light and dark.
#include "normlab/report/palette.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "normlab/report/colour.h"
#include "normlab/report/svg.h"

namespace normlab {
namespace {

// Okabe and Ito's colours, those that stand out best on white first.
constexpr std::array<std::string_view, 7> okabe_ito = {"#0072B2", "#D55E00", "#009E73", "#CC79A7",
                                                       "#E69F00", "#56B4E9", "#F0E442"};
constexpr std::array<std::string_view, 4> dashes = {"", "8 3", "3 2.5", "9 3 2.5 3"};
const Tone baseline_tone = {"#0d1014", "#f4f6f8"};

// Blue over violet to amber: no green, and the lightness only rises, so that it also works without colour vision.
constexpr Ramp line_light = {{0.36, 0.17, 266}, {0.53, 0.20, 335}, {0.67, 0.155, 60}};
constexpr Ramp line_dark = {{0.60, 0.15, 266}, {0.71, 0.17, 335}, {0.88, 0.14, 85}};
constexpr Ramp heat_light = {{0.965, 0.012, 240}, {0.70, 0.12, 240}, {0.30, 0.10, 265}};
constexpr Ramp heat_dark = {{0.235, 0.015, 265}, {0.55, 0.13, 250}, {0.95, 0.06, 200}};

std::vector<Tone> even_tones(const Ramp& light, const Ramp& dark, std::size_t count) {
  const auto on_light = even_colours(light, count), on_dark = even_colours(dark, count);
  std::vector<Tone> tones;
  for (std::size_t i = 0; i < count; ++i) tones.push_back({on_light[i], on_dark[i]});
  return tones;
}

std::vector<Style> styles(const std::vector<Tone>& tones, std::optional<std::size_t> baseline) {
  std::vector<Style> made;
  for (std::size_t i = 0; i < tones.size(); ++i) {
    const auto marker = static_cast<Marker>(i % 7);
    made.push_back(i == baseline ? Style{baseline_tone, "", marker, true}
                                 : Style{tones[i], dashes[i % dashes.size()], marker, false});
  }
  return made;
}

}  // namespace

std::vector<Style> category_styles(std::size_t count, std::optional<std::size_t> baseline) {
  std::vector<Tone> tones;
  for (std::size_t i = 0, next = 0; i < count; ++i) {
    const std::string colour(okabe_ito[next % okabe_ito.size()]);
    tones.push_back({colour, colour});
    if (i != baseline) ++next;  // the baseline uses up no colour
  }
  return styles(tones, baseline);
}

std::vector<Style> ordered_styles(std::size_t count, std::optional<std::size_t> baseline) {
  return styles(even_tones(line_light, line_dark, count), baseline);
}

std::vector<Tone> heat_tones(std::size_t count) { return even_tones(heat_light, heat_dark, count); }

std::string marker_path(Marker marker, double x, double y, double radius) {
  const double r = radius, s = 0.9 * r, d = 1.3 * r, t = 0.45 * r;
  using Corners = std::vector<std::array<double, 2>>;
  Corners corners;
  switch (marker) {
    case Marker::circle:
      for (int i = 0; i < 12; ++i) corners.push_back({r * std::cos(i * 0.5235988), r * std::sin(i * 0.5235988)});
      break;
    case Marker::square:
      corners = {{-s, -s}, {s, -s}, {s, s}, {-s, s}};
      break;
    case Marker::diamond:
      corners = {{0, -d}, {d, 0}, {0, d}, {-d, 0}};
      break;
    case Marker::triangle:
      corners = {{0, -d}, {1.15 * r, 0.8 * r}, {-1.15 * r, 0.8 * r}};
      break;
    case Marker::cross:
      corners = {{-t, -d}, {t, -d}, {t, -t}, {d, -t}, {d, t},   {t, t},
                 {t, d},   {-t, d}, {-t, t}, {-d, t}, {-d, -t}, {-t, -t}};
      break;
    case Marker::wedge:
      corners = {{0, d}, {1.15 * r, -0.8 * r}, {-1.15 * r, -0.8 * r}};
      break;
    case Marker::bar:
      corners = {{-d, -0.5 * r}, {d, -0.5 * r}, {d, 0.5 * r}, {-d, 0.5 * r}};
      break;
  }
  PathData path;
  for (std::size_t i = 0; i < corners.size(); ++i) {
    const auto [dx, dy] = corners[i];
    i == 0 ? path.move(x + dx, y + dy) : path.line(x + dx, y + dy);
  }
  path.close();
  return path.take();
}

}  // namespace normlab
