// Keys: the names of what is drawn, at the ends of lines where there is room, else in a legend.
#include "normlab/report/legend.h"

#include <algorithm>
#include <cmath>

#include "normlab/base/text.h"
#include "normlab/report/layout.h"

namespace normlab {
namespace {

constexpr double swatch = 22, swatch_gap = 8, value_gap = 12, key_height = 26, end_gap = 19, lead = 16;

std::string value_text(const Key& key) {
  if (std::isnan(key.last)) return "no data";
  if (!key.with_value) return "";
  return std::isinf(key.last) ? "diverged" : with_minus(significant(key.last, 4));
}

double widest_label(const std::vector<Key>& keys) {
  double widest = 0;
  for (const Key& key : keys) widest = std::max(widest, text_width(key.label, font_size));
  return widest;
}

double widest_value(const std::vector<Key>& keys) {
  double widest = 0;
  for (const Key& key : keys) widest = std::max(widest, text_width(value_text(key), font_size));
  return widest;
}

void draw_swatch(Svg& svg, const Key& key, double x, double y) {
  if (key.marker) {
    svg.element("path", {{"class", "mark"}, {"d", marker_path(key.style.marker, x + swatch / 2, y, 4)}});
  } else {
    const std::string d = concat('M', px(x), ' ', px(y), 'h', px(swatch));
    svg.element("path", {{"class", "line"}, {"d", d}, {"stroke-dasharray", std::string(key.style.dash)}});
  }
}

}  // namespace

void open_tone(Svg& svg, std::string_view css_class, const Tone& tone) {
  svg.open("g", {{"class", concat("tone ", css_class)}, {"color", tone.light}, {"style", "--dark:" + tone.dark}});
}

void open_series(Svg& svg, std::string_view css_class, std::size_t number, const Style& style) {
  svg.open("g", {{"class", concat("tone ", css_class, style.baseline ? " baseline" : "")},
                 {"data-series", concat(number)},
                 {"color", style.tone.light},
                 {"style", "--dark:" + style.tone.dark}});
}

void sort_keys(std::vector<Key>& keys) {
  const auto rank = [](const Key& key) { return std::isnan(key.last) ? -HUGE_VAL : key.last; };
  std::stable_sort(keys.begin(), keys.end(), [&](const Key& a, const Key& b) { return rank(a) > rank(b); });
}

double draw_legend(Svg& svg, const Canvas& canvas, double top, const std::vector<Key>& keys) {
  if (keys.empty()) return top;
  const double label =
      std::min(widest_label(keys), canvas.width - swatch - swatch_gap - value_gap - widest_value(keys));
  const double width = swatch + swatch_gap + label + value_gap + widest_value(keys);
  const auto fitting = static_cast<std::size_t>((canvas.width + 20) / (width + 20));
  const std::size_t columns = std::clamp<std::size_t>(fitting, 1, keys.size());
  const std::size_t rows = (keys.size() + columns - 1) / columns;
  // Down the columns, so that neighbours in value are neighbours in the legend.
  for (std::size_t i = 0; i < keys.size(); ++i) {
    const double x = static_cast<double>(i / rows) * (canvas.width + 20) / static_cast<double>(columns);
    const double y = top + (static_cast<double>(i % rows) + 0.5) * key_height;
    open_series(svg, "key", keys[i].number, keys[i].style);
    svg.rect(x - 4, y - key_height / 2, width + 8, key_height, "hit");
    draw_swatch(svg, keys[i], x, y);
    svg.text(x + swatch + swatch_gap, y + 4.5, shortened(keys[i].label, label, font_size));
    svg.text(x + width, y + 4.5, value_text(keys[i]), {{"class", "end value"}});
    svg.close();
  }
  return top + static_cast<double>(rows) * key_height;
}

double end_keys_width(const std::vector<Key>& keys) {
  return lead + swatch + swatch_gap + widest_label(keys) + value_gap + widest_value(keys);
}

bool end_keys_fit(const Canvas& canvas, double plot_height, const std::vector<Key>& keys) {
  return end_keys_width(keys) < 0.3 * canvas.width &&
         static_cast<double>(keys.size()) * end_gap <= plot_height + end_gap;
}

void draw_end_keys(Svg& svg, const Plot& plot, const std::vector<Key>& keys) {
  const Area& area = plot.area;
  std::vector<double> wishes;
  for (const Key& key : keys) wishes.push_back(std::isnan(key.last) ? area.bottom() : plot.y.scale(key.last));
  const auto heights = spread(wishes, end_gap, area.top, area.bottom());
  const double left = area.right() + lead, width = end_keys_width(keys) - lead;
  for (std::size_t i = 0; i < keys.size(); ++i) {
    const double y = heights[i];
    open_series(svg, "key", keys[i].number, keys[i].style);
    svg.rect(left - 4, y - end_gap / 2, width + 8, end_gap, "hit");
    if (std::isfinite(keys[i].last)) svg.line(area.right() + 3, wishes[i], left - 2, y, "lead");
    draw_swatch(svg, keys[i], left, y);
    svg.text(left + swatch + swatch_gap, y + 4.5, keys[i].label);
    svg.text(left + width, y + 4.5, value_text(keys[i]), {{"class", "end value"}});
    svg.close();
  }
}

}  // namespace normlab
