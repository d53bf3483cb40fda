// Colours as the eye sees them: ramps at even distances, contrast.
#include "normlab/report/colour.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <numbers>

namespace normlab {
namespace {

using Triple = std::array<double, 3>;

double linear(double channel) {
  return channel <= 0.04045 ? channel / 12.92 : std::pow((channel + 0.055) / 1.055, 2.4);
}
double gamma(double channel) {
  return channel <= 0.0031308 ? 12.92 * channel : 1.055 * std::pow(channel, 1 / 2.4) - 0.055;
}

Triple parse(std::string_view colour) {
  Triple rgb{};
  for (std::size_t i = 0; i < 3; ++i) {
    int value = 0;
    std::from_chars(colour.data() + 1 + 2 * i, colour.data() + 3 + 2 * i, value, 16);
    rgb[i] = linear(value / 255.0);
  }
  return rgb;
}

// OKLab: B. Ottosson, "A perceptual color space for image processing" (2020).
Triple to_lab(const Triple& rgb) {
  const auto [r, g, b] = rgb;
  const double l = std::cbrt(0.4122214708 * r + 0.5363325363 * g + 0.0514459929 * b);
  const double m = std::cbrt(0.2119034982 * r + 0.6806995451 * g + 0.1073969566 * b);
  const double s = std::cbrt(0.0883024619 * r + 0.2817188376 * g + 0.6299787005 * b);
  return {0.2104542553 * l + 0.7936177850 * m - 0.0040720468 * s,
          1.9779984951 * l - 2.4285922050 * m + 0.4505937099 * s,
          0.0259040371 * l + 0.7827717662 * m - 0.8086757660 * s};
}

Triple to_rgb(const Triple& lab) {
  const double l = std::pow(lab[0] + 0.3963377774 * lab[1] + 0.2158037573 * lab[2], 3);
  const double m = std::pow(lab[0] - 0.1055613458 * lab[1] - 0.0638541728 * lab[2], 3);
  const double s = std::pow(lab[0] - 0.0894841775 * lab[1] - 1.2914855480 * lab[2], 3);
  return {4.0767416621 * l - 3.3077115913 * m + 0.2309699292 * s,
          -1.2684380046 * l + 2.6097574011 * m - 0.3413193965 * s,
          -0.0041960863 * l - 0.7034186147 * m + 1.7076147010 * s};
}

double distance(const Triple& a, const Triple& b) { return std::hypot(a[0] - b[0], a[1] - b[1], a[2] - b[2]); }

bool displayable(const Triple& rgb) {
  return std::all_of(rgb.begin(), rgb.end(), [](double c) { return c > -1e-4 && c < 1 + 1e-4; });
}

// The ramp at t in [0, 1], with its chroma reduced to what a screen can show.
Triple ramp_lab(const Ramp& ramp, double t) {
  const Triple& a = t < 0.5 ? ramp.from : ramp.middle;
  const Triple& b = t < 0.5 ? ramp.middle : ramp.to;
  const double share = t < 0.5 ? 2 * t : 2 * t - 1;
  const double turn = std::remainder(b[2] - a[2], 360);
  const double hue = (a[2] + share * turn) * std::numbers::pi / 180;
  for (double chroma = a[1] + share * (b[1] - a[1]);; chroma *= 0.98) {
    const Triple lab = {a[0] + share * (b[0] - a[0]), chroma * std::cos(hue), chroma * std::sin(hue)};
    if (displayable(to_rgb(lab)) || chroma < 1e-3) return lab;
  }
}

std::string hex(const Triple& lab) {
  std::string text = "#";
  for (const double channel : to_rgb(lab)) {
    const int value = static_cast<int>(std::lround(255 * gamma(std::clamp(channel, 0.0, 1.0))));
    text += "0123456789abcdef"[value / 16];
    text += "0123456789abcdef"[value % 16];
  }
  return text;
}

double luminance(std::string_view colour) {
  const auto [r, g, b] = parse(colour);
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
}

}  // namespace

std::vector<std::string> even_colours(const Ramp& ramp, std::size_t count) {
  constexpr int samples = 200;
  std::vector<double> length{0};
  for (int i = 1; i <= samples; ++i) {
    length.push_back(length.back() + distance(ramp_lab(ramp, (i - 1.0) / samples), ramp_lab(ramp, 1.0 * i / samples)));
  }
  std::vector<std::string> colours;
  for (std::size_t i = 0; i < count; ++i) {
    const double share = count > 1 ? static_cast<double>(i) / static_cast<double>(count - 1) : 0.5;
    const auto at = std::lower_bound(length.begin(), length.end(), share * length.back() - 1e-12);
    colours.push_back(hex(ramp_lab(ramp, static_cast<double>(at - length.begin()) / samples)));
  }
  return colours;
}

double contrast(std::string_view colour, std::string_view other) {
  const double a = luminance(colour) + 0.05, b = luminance(other) + 0.05;
  return std::max(a, b) / std::min(a, b);
}

double colour_distance(std::string_view colour, std::string_view other) {
  return distance(to_lab(parse(colour)), to_lab(parse(other)));
}

}  // namespace normlab
