// The values of curves for the script: exact ones, as few as the drawing shows.
#include "normlab/report/hover.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "normlab/base/text.h"
#include "normlab/report/thin.h"

namespace normlab {
namespace {

// Six significant digits without trailing zeros: 1.25, 250, 1.2e-07; null where there is no value.
std::string compact(double value) {
  if (!drawable(value)) return "null";
  std::string text = significant(value, 6);
  if (text.find('.') == std::string::npos || text.find('e') != std::string::npos) return text;
  text.erase(text.find_last_not_of('0') + 1);
  if (text.back() == '.') text.pop_back();
  return text;
}

std::string list(const std::vector<double>& values, const std::vector<std::size_t>& places) {
  std::string out = "[";
  for (const std::size_t i : places) out += concat(out.size() > 1 ? "," : "", compact(values[i]));
  return out + "]";
}

// The number of the column, which is added when it is new: most series share theirs.
std::size_t column_number(std::vector<std::string>& columns, const std::string& column) {
  const auto found = std::find(columns.begin(), columns.end(), column);
  if (found == columns.end()) {
    columns.push_back(column);
    return columns.size() - 1;
  }
  return static_cast<std::size_t>(found - columns.begin());
}

std::string text_list(const std::vector<std::string>& texts) {
  return nlohmann::json(texts).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace

std::string hover_values(const CurveSet& set) {
  const std::vector<std::string> names = labels(set);
  const std::size_t max_points = wide_canvas.max_points / (set.plots.size() > 1 ? 5 : 2);
  std::vector<std::string> columns, titles;
  std::string plots;
  for (const auto& plot : set.plots) {
    std::string curves;
    for (const Series& series : plot) {
      const auto places = thin(series.y, max_points);
      std::string used;
      for (const auto& column : series.x)
        used += concat(used.empty() ? "" : ",", column_number(columns, list(column, places)));
      const auto number = std::find(names.begin(), names.end(), series.label) - names.begin();
      curves += concat(curves.empty() ? "" : ",", "{\"series\":", number, ",\"x\":[", used,
                       "],\"y\":", list(series.y, places));
      if (!series.low.empty())
        curves += concat(",\"low\":", list(series.low, places), ",\"high\":", list(series.high, places));
      curves += '}';
    }
    plots += concat(plots.empty() ? "" : ",", '[', curves, ']');
  }
  for (const XAxis& axis : set.x) titles.push_back(axis.title);
  return concat("{\"titles\":", text_list(titles), ",\"labels\":", text_list(names), ",\"columns\":[",
                join(columns, ","), "],\"plots\":[", plots, "]}");
}

}  // namespace normlab
