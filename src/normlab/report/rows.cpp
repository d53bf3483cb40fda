// Row charts: one row for each thing compared, a shared horizontal axis, names at the left or above the marks.
#include "normlab/report/rows.h"

#include <algorithm>
#include <cmath>

#include "normlab/base/text.h"
#include "normlab/report/layout.h"

namespace normlab {
namespace {

constexpr double note_gap = 22, name_gap = 16, name_line = 20;

std::vector<double> note_widths(std::span<const ChartRow> rows, const std::vector<std::string>& titles) {
  std::vector<double> widths;
  for (std::size_t i = 0; i < titles.size(); ++i) {
    double width = text_width(titles[i], font_size);
    for (const ChartRow& row : rows) width = std::max(width, text_width(row.notes[i], font_size));
    widths.push_back(width);
  }
  return widths;
}

}  // namespace

double RowPlot::middle(std::size_t row) const {
  const double top = area.top + static_cast<double>(row) * row_height;
  return names_above ? top + name_line + (row_height - name_line) / 2 : top + row_height / 2;
}

RowPlot make_row_plot(const Canvas& canvas, PlotAxis x, std::span<const ChartRow> rows, const RowLayout& layout) {
  double names = 0, notes = 0;
  for (const ChartRow& row : rows) names = std::max(names, text_width(row.label, font_size));
  const std::vector<double> widths = note_widths(rows, layout.note_titles);
  for (const double width : widths) notes += width + note_gap;
  const bool above = names > 0.25 * canvas.width || (canvas.narrow && !widths.empty());
  const double left = above ? 8 : names + name_gap, right = above ? 8 : std::max(notes, 14.0);
  const double row_height = layout.row_height + (above ? name_line : 0);
  const double titles = widths.empty() ? 0 : line_height;
  const double head = above ? titles + layout.head : std::max(titles, layout.head);
  RowPlot plot{{left, layout.top + head, canvas.width - left - right, row_height * static_cast<double>(rows.size())},
               std::move(x),
               row_height,
               above,
               {}};
  // Right edges: from the right of the canvas inwards; above the marks the notes sit closer.
  double edge = canvas.width;
  for (auto width = widths.rbegin(); width != widths.rend(); ++width) {
    plot.columns.insert(plot.columns.begin(), edge);
    edge -= *width + (above ? note_gap / 2 : note_gap);
  }
  plot.x.scale.start = plot.area.left, plot.x.scale.end = plot.area.right();
  return plot;
}

void draw_rows(Svg& svg, const RowPlot& plot, std::span<const ChartRow> rows, const RowLayout& layout) {
  const Area& area = plot.area;
  svg.open("g", {{"class", "axes"}, {"aria-hidden", "true"}});
  for (std::size_t i = 0; i < plot.x.ticks.size(); ++i) {
    const double x = plot.x.scale(plot.x.ticks[i]);
    svg.line(x, area.top, x, area.bottom(), "grid");
    draw_x_label(svg, area, x, plot.x.labels[i]);
  }
  svg.text(area.right(), area.bottom() + 37, plot.x.title, {{"class", "end axis-title"}});
  for (std::size_t i = 0; i < layout.note_titles.size(); ++i) {
    svg.text(plot.columns[i], area.top - 8 - (plot.names_above ? layout.head : 0), layout.note_titles[i],
             {{"class", "end axis-title"}});
  }
  svg.close();
  for (std::size_t row = 0; row < rows.size(); ++row) {
    const double top = area.top + static_cast<double>(row) * plot.row_height;
    const double text = plot.names_above ? top + 15 : plot.middle(row) + 4.5;
    const double width = plot.names_above ? area.width : area.left - 4;
    open_series(svg, "key", row, rows[row].style);
    svg.rect(0, text - 16, width, 23, "hit");
    svg.text(0, text, shortened(rows[row].label, rows[row].style.baseline ? 0.92 * width : width, font_size),
             {{"class", "halo"}});
    svg.close();
    for (std::size_t i = 0; i < plot.columns.size(); ++i) {
      svg.text(plot.columns[i], text, rows[row].notes[i], {{"class", "end value halo"}});
    }
  }
}

void draw_value_dots(Svg& svg, const RowPlot& plot, double height, std::span<const double> values,
                     std::string_view what) {
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (!drawable(values[i])) continue;
    const double golden = 0.618033988749895 * static_cast<double>(i + 1);
    const double shift = 8 * (golden - std::floor(golden)) - 4;  // spreads evenly, the same in every drawing
    svg.element("circle",
                {{"class", "dot"}, {"cx", px(plot.x.scale(values[i]))}, {"cy", px(height + shift)}, {"r", "3"}},
                concat(what, ' ', i + 1, ": ", with_minus(significant(values[i], 4))));
  }
}

}  // namespace normlab
