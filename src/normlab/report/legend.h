// Keys: the names of what is drawn, at the ends of lines where there is room, else in a legend.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "normlab/report/figure.h"
#include "normlab/report/palette.h"
#include "normlab/report/plot.h"

namespace normlab {

struct Key {
  std::size_t number;  // ties it to the marks it names: the script hides and shows them together
  std::string label;
  Style style;
  double last;             // the final value, by which keys are ordered, largest first; infinite: diverged;
                           // NaN: there is none
  bool marker = false;     // shown as a marker, else as a line
  bool with_value = true;  // the final value is written beside the name
};

// Opens a group in the style's colour; what is inside draws with currentColor.
void open_tone(Svg& svg, std::string_view css_class, const Tone& tone);
void open_series(Svg& svg, std::string_view css_class, std::size_t number, const Style& style);

void sort_keys(std::vector<Key>& keys);

// Keys in columns from `top` on; returns the bottom.
double draw_legend(Svg& svg, const Canvas& canvas, double top, const std::vector<Key>& keys);

// Keys right of a plot, each as near as can be to the height of its last value, with a line leading there.
bool end_keys_fit(const Canvas& canvas, double plot_height, const std::vector<Key>& keys);
double end_keys_width(const std::vector<Key>& keys);
void draw_end_keys(Svg& svg, const Plot& plot, const std::vector<Key>& keys);

}  // namespace normlab
