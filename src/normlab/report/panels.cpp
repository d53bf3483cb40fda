// Panels: small line charts side by side that share their axes.
#include "normlab/report/panels.h"

#include <algorithm>
#include <cmath>

#include "normlab/base/text.h"
#include "normlab/report/hover.h"

namespace normlab {
namespace {

constexpr double gap = 16, title_height = 24;

struct Grid {
  std::size_t columns, rows;
  double left, width, height;  // of the y labels; of one panel
};

// As many columns as fit, but evenly filled: 6 panels are 3 + 3, not 5 + 1.
Grid make_grid(const Panels& chart, const Canvas& canvas, double left) {
  const std::size_t count = chart.panels.size(), most = canvas.narrow ? 2 : chart.most_columns;
  const std::size_t rows = std::max<std::size_t>(1, (count + most - 1) / most);
  const std::size_t columns = std::max<std::size_t>(1, (count + rows - 1) / rows);
  const double width = (canvas.width - left - 10 + gap) / static_cast<double>(columns) - gap;
  return {columns, rows, left, width, std::clamp(0.8 * width, 110.0, 200.0)};
}

Area panel_area(const Grid& grid, std::size_t i, double top) {
  const auto column = static_cast<double>(i % grid.columns), row = static_cast<double>(i / grid.columns);
  return {grid.left + column * (grid.width + gap), top + title_height + row * (grid.height + title_height + gap),
          grid.width, grid.height};
}

double grid_bottom(const Grid& grid, double top) {
  return top + static_cast<double>(grid.rows) * (grid.height + title_height + gap) - gap;
}

// The widest y labels of all views: the panels must not move when the view changes.
Grid shared_grid(const Panels& chart, const CurveSet& set, const Canvas& canvas) {
  double left = 0;
  for (const View view : views(set)) {
    left = std::max(left, label_width(make_axis("", y_range(set, view), view.log, 4)) + 10);
  }
  return make_grid(chart, canvas, left);
}

std::string draw_view(const Panels& chart, const CurveSet& set, View view, const Canvas& canvas, double top) {
  const Grid grid = shared_grid(chart, set, canvas);
  const PlotAxis x = make_axis("", x_range(set, view), false, canvas.narrow ? 3 : 2);
  const PlotAxis y = make_axis("", y_range(set, view), view.log, 4);
  Svg svg;
  open_view(svg, view, "small");
  for (std::size_t i = 0; i < chart.panels.size(); ++i) {
    Plot plot{panel_area(grid, i, top), x, y};
    if (i % grid.columns != 0) plot.y.labels.clear();
    if (i + grid.columns < chart.panels.size()) plot.x.labels.clear();
    if (i + 1 == chart.panels.size()) plot.x.title = chart.x[view.x_axis].title;
    fit(plot);
    draw_axes(svg, plot);
    svg.text(plot.area.left, plot.area.top - 8, chart.panels[i].title, {{"class", "panel-title"}});
    draw_curves(svg, plot, set, {view, i, canvas.max_points / (grid.columns + 1)});
  }
  svg.close();
  return svg.take();
}

Drawing draw(const Panels& chart, const CurveSet& set, const Canvas& canvas) {
  Svg svg;
  const double top = draw_heading(svg, canvas, chart.caption);
  svg.text(0, top + 8, chart.y.title, {{"class", "axis-title"}, {"aria-hidden", "true"}});
  const double first = top + y_title_height;
  const double bottom = grid_bottom(shared_grid(chart, set, canvas), first) + x_axis_height;
  std::vector<Key> names = keys(set);
  for (Key& key : names) key.with_value = false;  // each panel has its own
  const double end = draw_legend(svg, canvas, bottom + 4, names) + 4;
  Drawing drawing{end, svg.take(), {}};
  for (const View view : views(set)) drawing.views.push_back(draw_view(chart, set, view, canvas, first));
  return drawing;
}

// The last value of every series in every panel.
Table data_table(const Panels& chart, const CurveSet& set) {
  Table table{concat(chart.caption.title, ": last values"), {{"panel", "", Align::left, Best::none}}, {}};
  const std::vector<std::string> names = labels(set);
  for (const std::string& name : names) table.columns.push_back({name, "", Align::right, Best::none});
  for (const Panel& panel : chart.panels) {
    table.rows.push_back({text_cell(panel.title)});
    for (const std::string& name : names) {
      const auto found = std::find_if(panel.series.begin(), panel.series.end(),
                                      [&](const Series& series) { return series.label == name; });
      table.rows.back().push_back(number_cell(found == panel.series.end() ? std::nan("") : last_value(*found)));
    }
  }
  return table;
}

}  // namespace

Figure figure(const Panels& chart) {
  CurveSet set{chart.x, chart.y, {}};
  for (const Panel& panel : chart.panels) set.plots.push_back(panel.series);
  check_curves(set, "panels");
  return {chart.caption,     draw(chart, set, wide_canvas), draw(chart, set, narrow_canvas), switches(set),
          hover_values(set), data_table(chart, set)};
}

}  // namespace normlab
