// Paired differences: a mean with its interval in each row, every fold as a faint dot, zero as the baseline.
#include "normlab/report/interval_chart.h"

#include <cmath>

#include "normlab/base/error.h"
#include "normlab/base/text.h"
#include "normlab/report/layout.h"
#include "normlab/report/rows.h"

namespace normlab {
namespace {

constexpr double side_height = 22;

// The text, or its first word where there is no room for more, or nothing.
std::string fitting(const std::string& text, double room) {
  const std::string word = text.substr(0, text.find(' '));
  for (const std::string& choice : {text, word}) {
    if (!choice.empty() && text_width(choice, font_size) + 24 < room) return choice;
  }
  return "";
}

// Zero, and what each side of it means.
void draw_sides(Svg& svg, const RowPlot& plot, const IntervalChart& chart) {
  const double zero = plot.x.scale(0), y = plot.area.top - 8;
  svg.line(zero, plot.area.top - 4, zero, plot.area.bottom(), "zero");
  const std::string below = fitting(chart.below_zero, zero),
                    above = fitting(chart.above_zero, plot.area.right() - zero);
  if (!below.empty()) svg.text(zero - 8, y, concat("\xE2\x86\x90 ", below), {{"class", "end side"}});
  if (!above.empty()) svg.text(zero + 8, y, concat(above, " \xE2\x86\x92"), {{"class", "side"}});
}

void draw_interval(Svg& svg, const RowPlot& plot, std::size_t row, const IntervalRow& interval) {
  const double y = plot.middle(row) - 5;  // the dots of the folds are below
  if (!drawable(interval.mean)) {
    svg.text(plot.area.left + 8, y + 4.5, "no data yet", {{"class", "note"}});
    return;
  }
  std::string says = concat(interval.label, ": ", signed_number(interval.mean, 4));
  if (drawable(interval.low) && drawable(interval.high)) {
    const double low = plot.x.scale(interval.low), high = plot.x.scale(interval.high);
    svg.line(low, y, high, y, "interval");
    for (const double end : {low, high}) svg.line(end, y - 5, end, y + 5, "interval-end");
    const int decimals = interval_decimals(interval.low, interval.high, 4);
    says +=
        concat(", interval ", signed_number(interval.low, decimals), " to ", signed_number(interval.high, decimals));
  }
  svg.element("path", {{"class", "mark"}, {"d", marker_path(Marker::circle, plot.x.scale(interval.mean), y, 5.5)}},
              says);
}

Drawing draw(const IntervalChart& chart, const Canvas& canvas) {
  Extent range = chart.shared;
  range.include(0);
  std::vector<ChartRow> rows;
  for (const IntervalRow& interval : chart.intervals) {
    rows.push_back({interval.label, interval.style, interval.notes});
    for (const double value : {interval.mean, interval.low, interval.high}) range.include(value);
    for (const double value : interval.values) range.include(value);
  }
  Svg svg;
  const bool sides = !chart.below_zero.empty() || !chart.above_zero.empty();
  const RowLayout layout{.top = draw_heading(svg, canvas, chart.caption),
                         .head = sides ? side_height : 0,
                         .note_titles = chart.note_titles};
  Extent air = padded(range, 0.04);
  if (range.low == 0) air.low = -0.04 * (air.high - air.low);  // zero is a line here and must not sit on the edge
  if (range.high == 0) air.high = 0.04 * (air.high - air.low);
  const RowPlot plot =
      make_row_plot(canvas, make_axis(chart.axis_title, air, false, canvas.narrow ? 4 : 6), rows, layout);
  draw_rows(svg, plot, rows, layout);
  draw_sides(svg, plot, chart);
  for (std::size_t row = 0; row < rows.size(); ++row) {
    open_series(svg, "series", row, rows[row].style);
    draw_value_dots(svg, plot, plot.middle(row) + 8, chart.intervals[row].values, chart.value_name);
    draw_interval(svg, plot, row, chart.intervals[row]);
    svg.close();
  }
  return {plot.bottom(), svg.take(), {}};
}

Table data_table(const IntervalChart& chart) {
  Table table{concat(chart.caption.title, ", ", chart.axis_title), {{"", "label", Align::left, Best::none}}, {}};
  for (const char* name : {"mean", "low", "high"}) table.columns.push_back({name, "", Align::right, Best::none});
  for (const std::string& title : chart.note_titles) table.columns.push_back({title, "", Align::right, Best::none});
  for (const IntervalRow& interval : chart.intervals) {
    const int decimals = interval_decimals(interval.low, interval.high, 4);
    table.rows.push_back({text_cell(interval.label), signed_cell(interval.mean, 4), signed_cell(interval.low, decimals),
                          signed_cell(interval.high, decimals)});
    for (const std::string& note : interval.notes) table.rows.back().push_back(text_cell(note));
  }
  return table;
}

}  // namespace

Figure figure(const IntervalChart& chart) {
  for (const IntervalRow& interval : chart.intervals) {
    if (interval.notes.size() == chart.note_titles.size()) continue;
    throw Error("interval chart", concat("\"", interval.label, "\" has the wrong number of notes; got ",
                                         interval.notes.size(), ", expected ", chart.note_titles.size(), "."));
  }
  return {chart.caption, draw(chart, wide_canvas), draw(chart, narrow_canvas), {}, {}, data_table(chart)};
}

}  // namespace normlab
