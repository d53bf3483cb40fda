// Box plots: median, quartiles, whiskers to 1.5 x IQR, outliers as dots, the mean as a diamond; fewer than five values
// are drawn as they are.
#include "normlab/report/box_chart.h"

#include <algorithm>
#include <cmath>

#include "normlab/base/error.h"
#include "normlab/base/text.h"
#include "normlab/report/rows.h"
#include "normlab/stats/summary.h"

namespace normlab {
namespace {

constexpr double box_height = 20;
constexpr std::size_t fewest_for_a_box = 5;  // quartiles of fewer values say less than the values

std::vector<double> finite(const std::vector<double>& values) {
  std::vector<double> kept;
  std::copy_if(values.begin(), values.end(), std::back_inserter(kept), drawable);
  return kept;
}

std::string shown(double value) { return with_minus(significant(value, 4)); }

void draw_box(Svg& svg, const RowPlot& plot, double y, const std::string& label, const BoxPlot& box) {
  constexpr double half = box_height / 2;
  const auto at = [&](double value) { return plot.x.scale(value); };
  svg.line(at(box.whisker_low), y, at(box.q1), y, "whisker");
  svg.line(at(box.q3), y, at(box.whisker_high), y, "whisker");
  for (const double end : {box.whisker_low, box.whisker_high}) svg.line(at(end), y - 5, at(end), y + 5, "whisker");
  svg.element("rect",
              {{"class", "box"},
               {"x", px(at(box.q1))},
               {"y", px(y - half)},
               {"width", px(at(box.q3) - at(box.q1))},
               {"height", px(box_height)}},
              concat(label, ": median ", shown(box.median), ", quartiles ", shown(box.q1), " to ", shown(box.q3)));
  svg.line(at(box.median), y - half, at(box.median), y + half, "median");
  svg.element("path", {{"class", "mean"}, {"d", marker_path(Marker::diamond, at(box.mean), y, 4)}},
              concat(label, ": mean ", shown(box.mean)));
  for (const double value : box.outliers) {
    svg.element("circle", {{"class", "outlier"}, {"cx", px(at(value))}, {"cy", px(y)}, {"r", "3.5"}},
                concat(label, ": outlier ", shown(value)));
  }
}

Drawing draw(const BoxChart& chart, const Canvas& canvas) {
  Extent range;
  std::vector<ChartRow> rows;
  for (const Box& box : chart.boxes) {
    rows.push_back({box.label, box.style, box.notes});
    for (const double value : box.values) range.include(value);
  }
  Svg svg;
  const RowLayout layout{.top = draw_heading(svg, canvas, chart.caption), .note_titles = chart.note_titles};
  const PlotAxis x =
      make_axis(chart.axis_title, range.empty() ? range : padded(range, 0.04), false, canvas.narrow ? 4 : 7);
  const RowPlot plot = make_row_plot(canvas, x, rows, layout);
  draw_rows(svg, plot, rows, layout);
  for (std::size_t row = 0; row < rows.size(); ++row) {
    open_series(svg, "series", row, rows[row].style);
    const std::vector<double> values = finite(chart.boxes[row].values);
    if (values.empty()) {
      svg.text(plot.area.left + 8, plot.middle(row) + 4.5, "no data yet", {{"class", "note"}});
    } else {
      draw_value_dots(svg, plot, plot.middle(row), chart.boxes[row].values, chart.value_name);
      if (values.size() >= fewest_for_a_box) draw_box(svg, plot, plot.middle(row), rows[row].label, box_plot(values));
    }
    svg.close();
  }
  return {plot.bottom(), svg.take(), {}};
}

Table data_table(const BoxChart& chart) {
  Table table{concat(chart.caption.title, ", ", chart.axis_title), {{"", "label", Align::left, Best::none}}, {}};
  for (const char* name :
       {"values", "mean", "lower whisker", "lower quartile", "median", "upper quartile", "upper whisker"}) {
    table.columns.push_back({name, "", Align::right, Best::none});
  }
  for (const Box& box : chart.boxes) {
    const std::vector<double> values = finite(box.values);
    table.rows.push_back({text_cell(box.label), {concat(values.size()), static_cast<double>(values.size())}});
    const double none = std::nan("");
    const BoxPlot b = values.empty() ? BoxPlot{none, none, none, none, none, none} : box_plot(values);
    for (const double value : {b.mean, b.whisker_low, b.q1, b.median, b.q3, b.whisker_high})
      table.rows.back().push_back(number_cell(value));
  }
  return table;
}

}  // namespace

Figure figure(const BoxChart& chart) {
  for (const Box& box : chart.boxes) {
    if (box.notes.size() == chart.note_titles.size()) continue;
    throw Error("box chart", concat("\"", box.label, "\" has the wrong number of notes; got ", box.notes.size(),
                                    ", expected ", chart.note_titles.size(), "."));
  }
  return {chart.caption, draw(chart, wide_canvas), draw(chart, narrow_canvas), {}, {}, data_table(chart)};
}

}  // namespace normlab
