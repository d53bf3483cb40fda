// A plot: an area with axes and grid.
#include "normlab/report/plot.h"

#include <algorithm>

#include "normlab/base/text.h"
#include "normlab/report/layout.h"

namespace normlab {

PlotAxis make_axis(std::string title, Extent range, bool log, int wanted_ticks) {
  if (range.empty()) return {std::move(title), {{1, 2}, 0, 1, log}, {}, {}};
  PlotAxis axis{std::move(title), {range, 0, 1, log}, ticks(range, log, wanted_ticks), {}};
  axis.labels = tick_labels(axis.ticks, log);
  return axis;
}

double label_width(const PlotAxis& axis) {
  double widest = 0;
  for (const std::string& label : axis.labels) widest = std::max(widest, text_width(label, font_size));
  return widest;
}

void draw_x_label(Svg& svg, const Area& area, double x, const std::string& label) {
  constexpr double overhang = 2;  // more could touch the label of a neighbour
  const double half = text_width(label, font_size) / 2, y = area.bottom() + 18;
  if (x + half > area.right() + overhang) {
    svg.text(area.right() + overhang, y, label, {{"class", "end"}});
  } else if (x - half < area.left - overhang) {
    svg.text(area.left - overhang, y, label);
  } else {
    svg.text(x, y, label, {{"class", "middle"}});
  }
}

// Every how many-th tick, counted from the last, has room for its label.
std::size_t label_step(const Plot& plot) {
  constexpr double overhang = 2, between = 6;
  const std::size_t n = plot.x.labels.size();
  const auto place = [&](std::size_t i) {  // as draw_x_label puts it
    const double width = text_width(plot.x.labels[i], font_size);
    const double left = std::min(plot.x.scale(plot.x.ticks[i]) - width / 2, plot.area.right() + overhang - width);
    return Extent{std::max(left, plot.area.left - overhang), std::max(left, plot.area.left - overhang) + width};
  };
  for (std::size_t step = 1; step < n; ++step) {
    bool fits = true;
    for (std::size_t i = n - 1; i >= step; i -= step) fits = fits && place(i - step).high + between <= place(i).low;
    if (fits) return step;
  }
  return std::max<std::size_t>(1, n);
}

void fit(Plot& plot) {
  plot.x.scale.start = plot.area.left, plot.x.scale.end = plot.area.right();
  plot.y.scale.start = plot.area.bottom(), plot.y.scale.end = plot.area.top;
}

void draw_axes(Svg& svg, const Plot& plot) {
  const Area& area = plot.area;
  svg.open("g", {{"class", "axes"}, {"aria-hidden", "true"}});
  for (std::size_t i = 0; i < plot.y.ticks.size(); ++i) {
    const double y = plot.y.scale(plot.y.ticks[i]);
    svg.line(area.left, y, area.right(), y, "grid");
    if (!plot.y.labels.empty()) svg.text(area.left - 8, y + 4.5, plot.y.labels[i], {{"class", "end"}});
  }
  svg.line(area.left, area.bottom(), area.right(), area.bottom(), "rule");
  const std::size_t step = label_step(plot);
  for (std::size_t i = 0; i < plot.x.ticks.size(); ++i) {
    const double x = plot.x.scale(plot.x.ticks[i]);
    svg.line(x, area.bottom(), x, area.bottom() + 4, "rule");
    const bool labelled = !plot.x.labels.empty() && (plot.x.ticks.size() - 1 - i) % step == 0;
    if (labelled) draw_x_label(svg, area, x, plot.x.labels[i]);
  }
  if (!plot.x.title.empty()) {
    svg.text(area.right(), area.bottom() + 37, plot.x.title, {{"class", "end axis-title"}});
  }
  if (!plot.y.title.empty()) svg.text(0, area.top - 12, plot.y.title, {{"class", "axis-title"}});
  svg.close();
}

}  // namespace normlab
