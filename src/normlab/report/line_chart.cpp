// A line chart: curves with bands, keys at the line ends, axes that can be switched.
#include "normlab/report/line_chart.h"

#include <algorithm>
#include <cmath>

#include "normlab/base/text.h"
#include "normlab/report/hover.h"

namespace normlab {
namespace {

constexpr std::size_t table_rows = 24;

std::string draw_view(const LineChart& chart, const CurveSet& set, View view, const Canvas& canvas, double top) {
  const std::vector<Key> names = keys(set);
  const double height = canvas.narrow ? 270 : 370;
  const bool at_ends = end_keys_fit(canvas, height, names);
  Plot plot;
  plot.x = make_axis(chart.x[view.x_axis].title, x_range(set, view), false, canvas.narrow ? 4 : 7);
  plot.y = make_axis(chart.y.title, y_range(set, view), view.log, canvas.narrow ? 5 : 6);
  const double left = label_width(plot.y) + 10, right = at_ends ? end_keys_width(names) + 4 : 14;
  plot.area = {left, top + y_title_height, canvas.width - left - right, height};
  fit(plot);
  Svg svg;
  open_view(svg, view);
  draw_axes(svg, plot);
  draw_curves(svg, plot, set, {view, 0, canvas.max_points});
  if (at_ends) draw_end_keys(svg, plot, names);
  svg.close();
  return svg.take();
}

Drawing draw(const LineChart& chart, const CurveSet& set, const Canvas& canvas) {
  const std::vector<Key> names = keys(set);
  const double height = canvas.narrow ? 270 : 370;
  Svg svg;
  const double top = draw_heading(svg, canvas, chart.caption);
  double bottom = top + y_title_height + height + x_axis_height;
  if (!end_keys_fit(canvas, height, names)) bottom = draw_legend(svg, canvas, bottom + 4, names);
  Drawing drawing{bottom + 4, svg.take(), {}};
  for (const View view : views(set)) drawing.views.push_back(draw_view(chart, set, view, canvas, top));
  return drawing;
}

// A readable number of rows at evenly chosen points of the first series that has the most.
Table data_table(const LineChart& chart) {
  Table table{chart.caption.title, {}, {}};
  if (chart.x.empty() || chart.series.empty()) return table;
  table.columns.push_back({chart.x[0].title, "x", Align::right, Best::none});
  for (const Series& series : chart.series) table.columns.push_back({series.label, "", Align::right, Best::none});
  const auto& longest =
      std::max_element(chart.series.begin(), chart.series.end(), [](const Series& a, const Series& b) {
        return a.y.size() < b.y.size();
      })->x[0];
  const std::size_t rows = std::min(table_rows, longest.size());
  for (std::size_t row = 0; row < rows; ++row) {
    const double x = longest[rows == 1 ? 0 : row * (longest.size() - 1) / (rows - 1)];
    table.rows.push_back({{with_minus(format_number(x)), x}});
    for (const Series& series : chart.series) {
      const auto at = std::find(series.x[0].begin(), series.x[0].end(), x);
      const bool found = at != series.x[0].end();
      table.rows.back().push_back(
          number_cell(found ? series.y[static_cast<std::size_t>(at - series.x[0].begin())] : std::nan("")));
    }
  }
  return table;
}

}  // namespace

Figure figure(const LineChart& chart) {
  const CurveSet set{chart.x, chart.y, {chart.series}};
  check_curves(set, "line chart");
  return {chart.caption,
          draw(chart, set, wide_canvas),
          draw(chart, set, narrow_canvas),
          switches(set),
          hover_values(set),
          data_table(chart)};
}

}  // namespace normlab
