// Curves: the series of line charts and panels, the views they can be switched to, and how they are drawn.
#include "normlab/report/curves.h"

#include <algorithm>
#include <cmath>

#include "normlab/base/error.h"
#include "normlab/base/text.h"
#include "normlab/report/thin.h"

namespace normlab {
namespace {

// The places of the points to draw: from the start of the axis on, thinned.
std::vector<std::size_t> shown_points(const Series& series, double from, std::size_t axis, std::size_t max_points) {
  std::vector<std::size_t> places;
  std::vector<double> values;
  for (std::size_t i = 0; i < series.y.size(); ++i) {
    if (!(series.x[axis][i] >= from) || !drawable(series.x[axis][i])) continue;
    places.push_back(i);
    values.push_back(series.y[i]);
  }
  std::vector<std::size_t> kept;
  for (const std::size_t i : thin(values, max_points)) kept.push_back(places[i]);
  return kept;
}

// Calls `draw` for every stretch of points without a gap.
template <class Draw>
void for_each_run(const std::vector<std::size_t>& points, const std::vector<double>& y, Draw draw) {
  for (std::size_t start = 0; start < points.size();) {
    std::size_t end = start;
    while (end < points.size() && drawable(y[points[end]])) ++end;
    if (end > start) draw(std::span(points).subspan(start, end - start));
    start = end + 1;
  }
}

std::string line_path(const Plot& plot, const Series& series, const std::vector<double>& x,
                      std::span<const std::size_t> run) {
  PathData path;
  const auto at = [&](std::size_t i) { return std::pair(plot.x.scale(x[i]), plot.y.scale(series.y[i])); };
  const auto [x0, y0] = at(run.front());
  path.move(x0, y0);
  for (const std::size_t i : run.subspan(1)) {
    const auto [px, py] = at(i);
    path.line(px, py);
  }
  if (run.size() == 1) path.line(x0, y0);  // round caps make it a dot
  return path.take();
}

std::string band_path(const Plot& plot, const Series& series, const std::vector<double>& x,
                      std::span<const std::size_t> run) {
  PathData path;
  path.move(plot.x.scale(x[run.front()]), plot.y.scale(series.high[run.front()]));
  for (const std::size_t i : run.subspan(1)) path.line(plot.x.scale(x[i]), plot.y.scale(series.high[i]));
  for (auto i = run.rbegin(); i != run.rend(); ++i) path.line(plot.x.scale(x[*i]), plot.y.scale(series.low[*i]));
  path.close();
  return path.take();
}

template <class Visit>
void for_each_series(const CurveSet& set, Visit visit) {
  for (const auto& plot : set.plots) {
    for (const Series& series : plot) visit(series);
  }
}

bool all_positive(const CurveSet& set) {
  bool positive = true;
  for_each_series(set, [&](const Series& series) {
    for (const auto* values : {&series.y, &series.low}) {
      for (const double value : *values) positive = positive && !(value <= 0);
    }
  });
  return positive;
}

}  // namespace

void check_curves(const CurveSet& set, std::string_view where) {
  constexpr std::size_t most_axes = 4;  // page.css has a rule for each
  if (set.x.size() > most_axes) {
    throw Error(std::string(where),
                concat("too many x axes; got ", set.x.size(), ", expected at most ", most_axes, "."));
  }
  for_each_series(set, [&](const Series& series) {
    bool fits = series.x.size() == set.x.size() && series.low.size() == series.high.size() &&
                (series.low.empty() || series.low.size() == series.y.size());
    for (const auto& column : series.x) fits = fits && column.size() == series.y.size();
    if (fits) return;
    throw Error(std::string(where),
                concat("series \"", series.label, "\" does not fit; expected ", set.x.size(),
                       " columns of x, each with ", series.y.size(), " values like y, and a band as long or none."));
  });
}

std::vector<View> views(const CurveSet& set) {
  std::vector<View> found;
  const bool log = set.y.can_be_log && all_positive(set);
  for (std::size_t i = 0; i < set.x.size(); ++i) {
    if (log && set.y.log_first) found.push_back({i, true, 0});
    found.push_back({i, false, log && set.y.log_first ? 1U : 0U});
    if (log && !set.y.log_first) found.push_back({i, true, 1});
  }
  return found;
}

std::vector<Switch> switches(const CurveSet& set) {
  Switch across{"x", "x axis", {}}, up{"y", "y axis", {"linear"}};
  for (const XAxis& axis : set.x) across.options.push_back(axis.name);
  if (set.y.can_be_log && all_positive(set))
    up.options.insert(set.y.log_first ? up.options.begin() : up.options.end(), "log");
  return {across, up};
}

std::vector<std::string> labels(const CurveSet& set) {
  std::vector<std::string> found;
  for_each_series(set, [&](const Series& series) {
    if (std::find(found.begin(), found.end(), series.label) == found.end()) found.push_back(series.label);
  });
  return found;
}

std::vector<Key> keys(const CurveSet& set) {
  std::vector<Key> found;
  for (const std::string& label : labels(set)) {
    double sum = 0, count = 0;
    Style style;
    for_each_series(set, [&](const Series& series) {
      if (series.label != label) return;
      style = series.style;
      if (const double last = last_value(series); !std::isnan(last)) sum += last, ++count;
    });
    found.push_back({found.size(), label, style, sum / count});  // 0 / 0 is NaN: nothing to show
  }
  sort_keys(found);
  return found;
}

Extent x_range(const CurveSet& set, View view) {
  Extent range;
  for_each_series(set, [&](const Series& series) {
    for (const double x : series.x[view.x_axis]) {
      if (x >= set.x[view.x_axis].from) range.include(x);
    }
  });
  return range.empty() ? range : padded(range, 0);
}

Extent y_range(const CurveSet& set, View view) {
  Extent range;
  for_each_series(set, [&](const Series& series) {
    for (std::size_t i = 0; i < series.y.size(); ++i) {
      if (!(series.x[view.x_axis][i] >= set.x[view.x_axis].from) || !drawable(series.y[i])) continue;
      range.include(series.y[i]);
      if (!series.low.empty()) range.include(series.low[i]), range.include(series.high[i]);
    }
  });
  return range.empty() ? range : padded(range, 0.03, view.log);
}

double last_value(const Series& series) {
  if (std::none_of(series.y.begin(), series.y.end(), drawable)) return std::nan("");
  return drawable(series.y.back()) ? series.y.back() : std::numeric_limits<double>::infinity();
}

void open_view(Svg& svg, View view, std::string_view css_class) {
  const bool first = view.x_axis == 0 && view.y_option == 0;
  svg.open("g", {{"class", concat("view ", first ? "first " : "", css_class)},
                 {"data-x", concat(view.x_axis)},
                 {"data-y", concat(view.y_option)}});
}

void draw_curves(Svg& svg, const Plot& plot, const CurveSet& set, const CurveStyle& how) {
  const Area& area = plot.area;
  const Extent &x = plot.x.scale.domain, &y = plot.y.scale.domain;
  const std::vector<std::string> names = labels(set);
  const auto draw_all = [&](bool baseline, bool bands) {
    for (const Series& series : set.plots[how.plot]) {
      if (series.style.baseline != baseline || (bands && series.low.empty())) continue;
      const auto points = shown_points(series, set.x[how.view.x_axis].from, how.view.x_axis, how.max_points);
      const auto& column = series.x[how.view.x_axis];
      std::string d;
      for_each_run(points, series.y, [&](std::span<const std::size_t> run) {
        d += bands ? band_path(plot, series, column, run) : line_path(plot, series, column, run);
      });
      const auto number = static_cast<std::size_t>(std::find(names.begin(), names.end(), series.label) - names.begin());
      open_series(svg, "series", number, series.style);
      svg.element("path", {{"class", bands ? "band" : "line"},
                           {"d", d},
                           {"stroke-dasharray", bands ? "" : std::string(series.style.dash)}});
      svg.close();
    }
  };
  svg.open("g", {{"class", "plot"},
                 {"aria-hidden", "true"},
                 {"data-plot", concat(how.plot)},
                 {"data-frame", concat(px(area.left), ' ', px(area.top), ' ', px(area.width), ' ', px(area.height))},
                 {"data-domain", concat(x.low, ' ', x.high, ' ', y.low, ' ', y.high)},
                 {"data-log", how.view.log ? "1" : "0"}});
  svg.rect(area.left, area.top, area.width, area.height, "hit");
  const auto drawn = [](const Series& series) { return !std::isnan(last_value(series)); };
  if (std::none_of(set.plots[how.plot].begin(), set.plots[how.plot].end(), drawn)) {
    svg.text(area.left + area.width / 2, area.top + area.height / 2, "no data yet", {{"class", "middle note"}});
  }
  // Bands below all lines, the baseline above the others.
  for (const bool bands : {true, false}) {
    for (const bool baseline : {false, true}) draw_all(baseline, bands);
  }
  svg.close();
}

}  // namespace normlab
