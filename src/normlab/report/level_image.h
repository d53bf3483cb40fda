// Images for dense heat maps: a grey PNG of one byte per cell, coloured by filters that follow the light or dark
// setting.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "normlab/report/plot.h"

namespace normlab {

struct LevelImage {
  std::size_t width = 0, height = 0;
  std::vector<std::uint8_t> levels;  // row by row; 0 is transparent, 1 to 255 run along the ramp of heat_tones()
};

std::string png(const LevelImage& image);

// The filters that turn levels into colours; `id` names them within the page.
void define_level_filters(Svg& svg, const std::string& id);
void draw_levels(Svg& svg, const Area& area, const LevelImage& image, const std::string& filter_id);

}  // namespace normlab
