// A histogram: shares of values in bins of equal width, on a linear or a logarithmic axis, which shows the tails.
#include "normlab/report/histogram.h"

#include <algorithm>

#include "normlab/base/error.h"
#include "normlab/base/text.h"
#include "normlab/report/curves.h"

namespace normlab {
namespace {

double edge(const Histogram& chart, std::size_t i) {
  return chart.low + (chart.high - chart.low) * static_cast<double>(i) / static_cast<double>(chart.shares.size());
}

std::string bin_text(const Histogram& chart, std::size_t i) {
  return concat(with_minus(significant(edge(chart, i), 3)), " to ", with_minus(significant(edge(chart, i + 1), 3)));
}

// The axis of shares: from 0, or from half of the least share above it.
PlotAxis share_axis(const Histogram& chart, bool log) {
  Extent range;
  for (const double share : chart.shares)
    if (share > 0) range.include(share);
  if (range.empty()) return make_axis(chart.y_title, range, log, 4);
  return make_axis(chart.y_title, {log ? range.low / 2 : 0, range.high * (log ? 1.2 : 1.05)}, log, 4);
}

Plot make_plot(const Histogram& chart, const Canvas& canvas, double top, bool log) {
  const double height = canvas.narrow ? 170 : 260;
  Plot plot;
  plot.x = make_axis(chart.x_title, {chart.low, chart.high}, false, canvas.narrow ? 5 : 9);
  plot.y = share_axis(chart, log);
  const double left = std::max(label_width(plot.y), label_width(share_axis(chart, !log))) + 10;
  plot.area = {left, top + y_title_height, canvas.width - left - 8, height};
  fit(plot);
  return plot;
}

std::string draw_view(const Histogram& chart, const Canvas& canvas, double top, View view) {
  const Plot plot = make_plot(chart, canvas, top, view.log);
  Svg svg;
  open_view(svg, view);
  draw_axes(svg, plot);
  PathData bars;
  for (std::size_t i = 0; i < chart.shares.size(); ++i) {
    if (!(chart.shares[i] > 0)) continue;
    const double left = plot.x.scale(edge(chart, i)) + 0.5, right = plot.x.scale(edge(chart, i + 1)) - 0.5;
    const double y = plot.y.scale(chart.shares[i]);
    bars.box(left, y, std::max(right - left, 0.5), plot.area.bottom() - y);
  }
  const Tone tone = category_styles(1).front().tone;
  open_tone(svg, "series", tone);
  if (!bars.empty()) svg.element("path", {{"class", "bars"}, {"d", bars.take()}});
  svg.close();
  svg.close();
  return svg.take();
}

Drawing draw(const Histogram& chart, const Canvas& canvas) {
  Svg svg;
  const double top = draw_heading(svg, canvas, chart.caption);
  const Plot plot = make_plot(chart, canvas, top, false);
  Drawing drawing{plot.area.bottom() + x_axis_height, svg.take(), {}};
  for (const bool log : {false, true}) drawing.views.push_back(draw_view(chart, canvas, top, {0, log, log ? 1u : 0u}));
  // On top of both views: a whole column answers, also where its bar is too low to be hit.
  for (std::size_t i = 0; i < chart.shares.size(); ++i) {
    const double left = plot.x.scale(edge(chart, i)), right = plot.x.scale(edge(chart, i + 1));
    svg.element(
        "rect",
        {{"class", "hit"},
         {"x", px(left)},
         {"y", px(plot.area.top)},
         {"width", px(right - left)},
         {"height", px(plot.area.height)}},
        concat(bin_text(chart, i), ": ", chart.shares[i] > 0 ? significant(100 * chart.shares[i], 3) : "0", " %"));
  }
  drawing.views.push_back(svg.take());
  return drawing;
}

Table data_table(const Histogram& chart) {
  Table table{chart.caption.title, {{chart.x_title, "", Align::left, Best::none}, {chart.y_title}}, {}};
  for (std::size_t i = 0; i < chart.shares.size(); ++i)
    table.rows.push_back({text_cell(bin_text(chart, i)), number_cell(chart.shares[i], 3)});
  return table;
}

}  // namespace

Figure figure(const Histogram& chart) {
  if (chart.shares.empty() || !(chart.high > chart.low))
    throw Error("histogram", concat("\"", chart.caption.title, "\" has no bins; got ", chart.shares.size(), " from ",
                                    chart.low, " to ", chart.high, ", expected at least one of some width."));
  return {
      chart.caption,    draw(chart, wide_canvas), draw(chart, narrow_canvas), {{"y", "y axis", {"linear", "log"}}}, {},
      data_table(chart)};
}

}  // namespace normlab
