// A plot: an area with axes and grid.
#pragma once

#include <string>
#include <vector>

#include "normlab/report/figure.h"
#include "normlab/report/scale.h"

namespace normlab {

struct Area {
  double left, top, width, height;
  double right() const { return left + width; }
  double bottom() const { return top + height; }
};

struct PlotAxis {
  std::string title;  // with the unit
  Scale scale;
  std::vector<double> ticks;
  std::vector<std::string> labels;  // empty: the axis of a neighbour serves
};
// Without ticks when the range is empty. The scale's pixels are set later, by fit().
PlotAxis make_axis(std::string title, Extent range, bool log, int wanted_ticks);

struct Plot {
  Area area;
  PlotAxis x, y;
};
double label_width(const PlotAxis& axis);  // of the widest tick label
void fit(Plot& plot);                      // sets the pixels of both scales from the area
void draw_axes(Svg& svg, const Plot& plot);
void draw_x_label(Svg& svg, const Area& area, double x, const std::string& label);
inline constexpr double x_axis_height = 44, y_title_height = 22;  // what labels and titles need outside the area

}  // namespace normlab
