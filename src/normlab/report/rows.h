// Row charts: one row for each thing compared, a shared horizontal axis, names at the left or above the marks.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "normlab/report/legend.h"
#include "normlab/report/plot.h"

namespace normlab {

struct ChartRow {
  std::string label;
  Style style;
  std::vector<std::string> notes = {};  // a column of text each, right of the marks
};

struct RowPlot {
  Area area;
  PlotAxis x;
  double row_height;
  bool names_above;                      // when there is no room at the left
  std::vector<double> columns;           // right edges of the notes
  double middle(std::size_t row) const;  // height of the row's marks
  double bottom() const { return area.bottom() + x_axis_height; }
};

struct RowLayout {
  double top;
  double row_height = 44;
  double head = 0;  // kept free above the first row
  std::vector<std::string> note_titles = {};
};
RowPlot make_row_plot(const Canvas& canvas, PlotAxis x, std::span<const ChartRow> rows, const RowLayout& layout);

// Grid, axis, names (which are keys) and notes.
void draw_rows(Svg& svg, const RowPlot& plot, std::span<const ChartRow> rows, const RowLayout& layout);

// Every value as a faint dot near `height`, shifted up and down a little so that equal values stay apart.
void draw_value_dots(Svg& svg, const RowPlot& plot, double height, std::span<const double> values,
                     std::string_view what);

}  // namespace normlab
