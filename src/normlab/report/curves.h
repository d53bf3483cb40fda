// Curves: the series of line charts and panels, the views they can be switched to, and how they are drawn.
#pragma once

#include <cstddef>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include "normlab/report/legend.h"
#include "normlab/report/palette.h"
#include "normlab/report/plot.h"

namespace normlab {

// One way to lay out the horizontal axis: by step, tokens or time, or by step from some step on.
struct XAxis {
  std::string name;   // in the switch: "step", "tokens", "last third"
  std::string title;  // at the axis, with the unit
  double from = -std::numeric_limits<double>::infinity();
};

struct YAxis {
  std::string title;        // with the unit
  bool can_be_log = false;  // offer a switch to a logarithmic axis
  bool log_first = false;   // and show that one first
};

struct Series {
  std::string label;
  Style style;
  std::vector<std::vector<double>> x;       // a column for each x axis, rising, as long as y
  std::vector<double> y;                    // NaN leaves a gap; at the end it means diverged
  std::vector<double> low = {}, high = {};  // the band, as long as y, or empty
};

struct View {
  std::size_t x_axis;
  bool log;
  std::size_t y_option = 0;  // its number in the switch of the y axis
};

// What the series of one or more plots have in common.
struct CurveSet {
  const std::vector<XAxis>& x;
  const YAxis& y;
  std::vector<std::span<const Series>> plots;
};

void check_curves(const CurveSet& set, std::string_view where);  // throws when lengths or numbers of columns differ
std::vector<View> views(const CurveSet& set);
std::vector<Switch> switches(const CurveSet& set);
std::vector<std::string> labels(const CurveSet& set);  // each name once; its place is the number of the series
std::vector<Key> keys(const CurveSet& set);            // ordered by the mean of the last values over the plots
Extent x_range(const CurveSet& set, View view);        // both empty when there is nothing to draw
Extent y_range(const CurveSet& set, View view);
double last_value(const Series& series);  // infinite when diverged, NaN when there is none

struct CurveStyle {
  View view;
  std::size_t plot;  // its number, for the hover values
  std::size_t max_points;
};
void open_view(Svg& svg, View view, std::string_view css_class = "");
void draw_curves(Svg& svg, const Plot& plot, const CurveSet& set, const CurveStyle& how);

}  // namespace normlab
