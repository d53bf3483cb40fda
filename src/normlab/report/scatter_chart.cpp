// Points over two numbers, with curves and bands through them.
#include "normlab/report/scatter_chart.h"

#include <algorithm>
#include <cmath>

#include "normlab/base/error.h"
#include "normlab/base/text.h"
#include "normlab/report/legend.h"
#include "normlab/report/plot.h"

namespace normlab {
namespace {

double scatter_plot_height(const Canvas& canvas) { return canvas.narrow ? 270 : 370; }

void check(const ScatterChart& chart) {
  for (const ScatterSeries& series : chart.series) {
    const auto fits = [](const auto& list, const auto& other) { return list.empty() || list.size() == other.size(); };
    if (series.x.size() == series.y.size() && fits(series.low, series.y) && series.low.size() == series.high.size() &&
        series.line_x.size() == series.line_y.size() && fits(series.band_low, series.line_y) &&
        series.band_low.size() == series.band_high.size())
      continue;
    throw Error("scatter chart",
                concat("series \"", series.label, "\" does not fit; expected as many x as y, and intervals ",
                       "and bands as long or none."));
  }
}

Extent range_of(const ScatterChart& chart, std::initializer_list<std::vector<double> ScatterSeries::*> members) {
  Extent range;
  for (const ScatterSeries& series : chart.series)
    for (const auto member : members)
      for (const double value : series.*member) range.include(value);
  return range;
}

std::vector<Key> keys(const ScatterChart& chart) {
  std::vector<Key> found;
  for (const ScatterSeries& series : chart.series) {
    const auto& values = series.line_y.empty() ? series.y : series.line_y;
    const auto last = std::find_if(values.rbegin(), values.rend(), drawable);
    found.push_back({found.size(), series.label, series.style, last == values.rend() ? std::nan("") : *last,
                     !series.y.empty(), /*with_value=*/false});
  }
  sort_keys(found);
  return found;
}

Plot make_plot(const ScatterChart& chart, const Canvas& canvas, double top, double right) {
  Plot plot;
  const Extent x = range_of(chart, {&ScatterSeries::x, &ScatterSeries::line_x});
  Extent y = range_of(chart, {&ScatterSeries::y, &ScatterSeries::low, &ScatterSeries::high, &ScatterSeries::line_y,
                              &ScatterSeries::band_low, &ScatterSeries::band_high});
  if (chart.rule) y.include(*chart.rule);
  const bool log_x = chart.log_x && x.low > 0, log_y = chart.log_y && y.low > 0;
  plot.x = make_axis(chart.x_title, x.empty() ? x : padded(x, 0.03, log_x), log_x, canvas.narrow ? 4 : 7);
  plot.y = make_axis(chart.y_title, y.empty() ? y : padded(y, 0.04, log_y), log_y, canvas.narrow ? 5 : 6);
  const double left = label_width(plot.y) + 10;
  plot.area = {left, top + y_title_height, canvas.width - left - right, scatter_plot_height(canvas)};
  fit(plot);
  return plot;
}

void draw_line(Svg& svg, const Plot& plot, const ScatterSeries& series) {
  PathData line;
  bool joined = false;
  for (std::size_t i = 0; i < series.line_y.size(); ++i) {
    const bool shown = drawable(series.line_x[i]) && drawable(series.line_y[i]);
    if (shown) {
      const double x = plot.x.scale(series.line_x[i]), y = plot.y.scale(series.line_y[i]);
      joined ? line.line(x, y) : line.move(x, y);
    }
    joined = shown;
  }
  svg.element("path", {{"class", "line"}, {"d", line.take()}, {"stroke-dasharray", std::string(series.style.dash)}});
}

void draw_band(Svg& svg, const Plot& plot, const ScatterSeries& series) {
  PathData band;
  const auto all = [&](const std::vector<double>& values) {
    return std::all_of(values.begin(), values.end(), drawable);
  };
  if (series.band_low.empty() || !all(series.band_low) || !all(series.band_high)) return;
  const std::size_t n = series.band_low.size();
  band.move(plot.x.scale(series.line_x[0]), plot.y.scale(series.band_high[0]));
  for (std::size_t i = 1; i < n; ++i) band.line(plot.x.scale(series.line_x[i]), plot.y.scale(series.band_high[i]));
  for (std::size_t i = n; i-- > 0;) band.line(plot.x.scale(series.line_x[i]), plot.y.scale(series.band_low[i]));
  band.close();
  svg.element("path", {{"class", "band"}, {"d", band.take()}});
}

void draw_points(Svg& svg, const Plot& plot, const ScatterSeries& series) {
  for (std::size_t i = 0; i < series.y.size(); ++i) {
    if (!drawable(series.x[i]) || !drawable(series.y[i])) continue;
    const double x = plot.x.scale(series.x[i]), y = plot.y.scale(series.y[i]);
    std::string says =
        concat(series.label, ": ", with_minus(significant(series.y[i], 4)), " at ", significant(series.x[i], 4));
    if (!series.low.empty() && drawable(series.low[i]) && drawable(series.high[i])) {
      svg.line(x, plot.y.scale(series.low[i]), x, plot.y.scale(series.high[i]), "interval");
      says += concat(" (", with_minus(significant(series.low[i], 4)), " to ",
                     with_minus(significant(series.high[i], 4)), ")");
    }
    svg.element("path", {{"class", "mark"}, {"d", marker_path(series.style.marker, x, y, 4)}}, says);
  }
}

Drawing draw(const ScatterChart& chart, const Canvas& canvas) {
  const std::vector<Key> names = keys(chart);
  const bool at_ends = end_keys_fit(canvas, scatter_plot_height(canvas), names);
  Svg svg;
  const double top = draw_heading(svg, canvas, chart.caption);
  const Plot plot = make_plot(chart, canvas, top, at_ends ? end_keys_width(names) : 14);
  draw_axes(svg, plot);
  if (chart.rule) {
    const double y = plot.y.scale(*chart.rule);
    svg.line(plot.area.left, y, plot.area.right(), y, "zero");
  }
  for (const auto draw_part : {draw_band, draw_line, draw_points})
    for (std::size_t i = 0; i < chart.series.size(); ++i) {
      open_series(svg, "series", i, chart.series[i].style);
      draw_part(svg, plot, chart.series[i]);
      svg.close();
    }
  double bottom = plot.area.bottom() + x_axis_height;
  if (at_ends)
    draw_end_keys(svg, plot, names);
  else
    bottom = draw_legend(svg, canvas, bottom + 4, names);
  return {bottom + 4, svg.take(), {}};
}

Table data_table(const ScatterChart& chart) {
  Table table{chart.caption.title,
              {{"series", "", Align::left, Best::none}, {chart.x_title}, {chart.y_title}, {"low"}, {"high"}},
              {}};
  for (const ScatterSeries& series : chart.series) {
    const bool line = series.y.empty();  // its points are then the numbers
    const auto &x = line ? series.line_x : series.x, &y = line ? series.line_y : series.y;
    const auto &low = line ? series.band_low : series.low, &high = line ? series.band_high : series.high;
    for (std::size_t i = 0; i < y.size(); ++i)
      table.rows.push_back({text_cell(series.label), number_cell(x[i]), number_cell(y[i]),
                            number_cell(low.empty() ? std::nan("") : low[i]),
                            number_cell(high.empty() ? std::nan("") : high[i])});
  }
  return table;
}

}  // namespace

Figure figure(const ScatterChart& chart) {
  check(chart);
  return {chart.caption, draw(chart, wide_canvas), draw(chart, narrow_canvas), {}, {}, data_table(chart)};
}

}  // namespace normlab
