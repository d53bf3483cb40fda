// A figure: a chart drawn for wide and for narrow windows, its switches, its hover values and its table.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "normlab/report/html.h"
#include "normlab/report/svg.h"
#include "normlab/report/table.h"

namespace normlab {

// Text every chart has. The note says what is drawn, above all what bands and intervals are.
struct Caption {
  std::string id;  // the base of element ids and of file names
  std::string title;
  std::string note;
  std::string description;  // for those who do not see the chart
};

// Pixels are those of the drawing's own coordinates; the page scales the whole.
struct Canvas {
  double width;
  bool narrow;
  std::size_t max_points;  // of a curve as wide as the canvas
};
inline constexpr Canvas wide_canvas{880, false, 360}, narrow_canvas{360, true, 160};
inline constexpr double font_size = 13, line_height = 18;

struct Drawing {
  double height = 0;
  std::string body;                // always shown
  std::vector<std::string> views;  // <g class="view"> groups, one shown at a time, the first by default
};

// A choice among views: the groups whose `data-<axis>` is the number of the chosen option are shown.
struct Switch {
  std::string axis, label;
  std::vector<std::string> options;
};

struct Figure {
  Caption caption;
  Drawing wide, narrow;
  std::vector<Switch> switches;
  std::string hover;  // JSON for the script
  Table data;
};

Html html(const Figure& figure);
Html compact_html(const Figure& figure);     // the narrow drawing in every window, for figures that stand in columns
std::string svg_file(const Figure& figure);  // the wide drawing, first view, with its style: a file of its own

// Each chart type has `Figure figure(const Chart&)`.
template <class Chart>
Html render(const Chart& chart) {
  return html(figure(chart));
}

// Title and note at the top of a drawing; returns where the chart may start.
double draw_heading(Svg& svg, const Canvas& canvas, const Caption& caption);

}  // namespace normlab
