// Values over ordered categories: the gain of each layer against p, with intervals, and folds as faint dots.
#include "normlab/report/dot_chart.h"

#include <algorithm>
#include <cmath>

#include "normlab/base/error.h"
#include "normlab/base/text.h"
#include "normlab/report/legend.h"
#include "normlab/report/plot.h"

namespace normlab {
namespace {

double dot_plot_height(const Canvas& canvas) { return canvas.narrow ? 270 : 340; }

void check(const DotChart& chart) {
  const std::size_t count = chart.categories.size();
  for (const DotSeries& series : chart.series) {
    const auto fits = [&](const auto& list) { return list.empty() || list.size() == count; };
    if (series.mean.size() == count && series.low.size() == series.high.size() && fits(series.low) &&
        fits(series.values))
      continue;
    throw Error("dot chart",
                concat("series \"", series.label, "\" does not fit; expected ", count, " values, one per category."));
  }
}

std::vector<Key> keys(const DotChart& chart) {
  std::vector<Key> found;
  for (const DotSeries& series : chart.series) {
    const auto last = std::find_if(series.mean.rbegin(), series.mean.rend(), drawable);
    found.push_back(
        {found.size(), series.label, series.style, last == series.mean.rend() ? std::nan("") : *last, true});
  }
  sort_keys(found);
  return found;
}

Extent value_range(const DotChart& chart) {
  Extent range;
  for (const DotSeries& series : chart.series) {
    for (const auto* list : {&series.mean, &series.low, &series.high}) {
      for (const double value : *list) range.include(value);
    }
    for (const auto& values : series.values) {
      for (const double value : values) range.include(value);
    }
  }
  return range;
}

Plot make_plot(const DotChart& chart, const Canvas& canvas, double top, double right) {
  Plot plot;
  const double half = 0.5;
  plot.x = {chart.x_title,
            {{-half, std::max(1.0, static_cast<double>(chart.categories.size())) - half}, 0, 1, false},
            {},
            chart.categories};
  for (std::size_t i = 0; i < chart.categories.size(); ++i) plot.x.ticks.push_back(static_cast<double>(i));
  const Extent range = value_range(chart);
  const bool log = chart.log && range.low > 0;
  plot.y = make_axis(chart.y_title, range.empty() ? range : padded(range, 0.04, log), log, 6);
  const double left = label_width(plot.y) + 10;
  plot.area = {left, top + y_title_height, canvas.width - left - right, dot_plot_height(canvas)};
  fit(plot);
  return plot;
}

// `shift` keeps the marks of several series in one category apart.
void draw_series(Svg& svg, const Plot& plot, const DotChart& chart, std::size_t number, double shift) {
  const DotSeries& series = chart.series[number];
  PathData line;
  bool joined = false;
  open_series(svg, "series", number, series.style);
  for (std::size_t i = 0; i < series.mean.size(); ++i) {
    const double x = plot.x.scale(static_cast<double>(i)) + shift;
    for (std::size_t j = 0; !series.values.empty() && j < series.values[i].size(); ++j) {
      if (!drawable(series.values[i][j])) continue;
      svg.element("circle",
                  {{"class", "dot"}, {"cx", px(x)}, {"cy", px(plot.y.scale(series.values[i][j]))}, {"r", "2"}});
    }
    if (!drawable(series.mean[i])) {
      joined = false;
      continue;
    }
    const double y = plot.y.scale(series.mean[i]);
    joined ? line.line(x, y) : line.move(x, y);
    joined = true;
  }
  svg.element("path", {{"class", "thin line"}, {"d", line.take()}});
  for (std::size_t i = 0; i < series.mean.size(); ++i) {
    if (!drawable(series.mean[i])) continue;
    const double x = plot.x.scale(static_cast<double>(i)) + shift;
    std::string says =
        concat(series.label, ", ", chart.categories[i], ": ", with_minus(significant(series.mean[i], 4)));
    if (!series.low.empty() && drawable(series.low[i]) && drawable(series.high[i])) {
      svg.line(x, plot.y.scale(series.low[i]), x, plot.y.scale(series.high[i]), "interval");
      says += concat(" (", with_minus(significant(series.low[i], 4)), " to ",
                     with_minus(significant(series.high[i], 4)), ")");
    }
    svg.element("path",
                {{"class", "mark"}, {"d", marker_path(series.style.marker, x, plot.y.scale(series.mean[i]), 4)}}, says);
  }
  svg.close();
}

Drawing draw(const DotChart& chart, const Canvas& canvas) {
  const std::vector<Key> names = keys(chart);
  const bool at_ends = end_keys_fit(canvas, dot_plot_height(canvas), names);
  Svg svg;
  const double top = draw_heading(svg, canvas, chart.caption);
  const Plot plot = make_plot(chart, canvas, top, at_ends ? end_keys_width(names) : 4);
  draw_axes(svg, plot);
  const double slot = plot.area.width / std::max(1.0, static_cast<double>(chart.categories.size()));
  const double step = std::min(9.0, 0.7 * slot / std::max(1.0, static_cast<double>(chart.series.size())));
  for (std::size_t i = 0; i < chart.series.size(); ++i) {
    draw_series(svg, plot, chart, i,
                step * (static_cast<double>(i) - 0.5 * static_cast<double>(chart.series.size() - 1)));
  }
  double bottom = plot.area.bottom() + x_axis_height;
  if (at_ends) {
    draw_end_keys(svg, plot, names);
  } else {
    bottom = draw_legend(svg, canvas, bottom + 4, names);
  }
  return {bottom + 4, svg.take(), {}};
}

Table data_table(const DotChart& chart) {
  Table table{concat(chart.caption.title, ", ", chart.y_title), {{chart.x_title, "", Align::left, Best::none}}, {}};
  for (const DotSeries& series : chart.series) table.columns.push_back({series.label, "", Align::right, Best::none});
  for (std::size_t i = 0; i < chart.categories.size(); ++i) {
    table.rows.push_back({text_cell(chart.categories[i])});
    for (const DotSeries& series : chart.series) table.rows.back().push_back(number_cell(series.mean[i]));
  }
  return table;
}

}  // namespace

Figure figure(const DotChart& chart) {
  check(chart);
  return {chart.caption, draw(chart, wide_canvas), draw(chart, narrow_canvas), {}, {}, data_table(chart)};
}

}  // namespace normlab
