// The values of a heat map: the range of its ramp, its table, and what the script shows on hover.
#include "normlab/report/heat_values.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "normlab/base/text.h"

namespace normlab {
namespace {

std::string name_list(const std::vector<std::string>& names) {
  std::vector<std::string> texts;
  for (const std::string& name : names) texts.push_back(visible_name(name));
  return nlohmann::json(texts).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

Table whole_table(const HeatMap& map) {
  Table table{concat(map.caption.title, ", ", map.value_title), {{map.row_title, "", Align::left, Best::none}}, {}};
  for (const std::string& name : map.columns)
    table.columns.push_back({concat(map.column_title, " = ", name), "", Align::right, Best::none});
  for (std::size_t row = 0; row < map.rows.size(); ++row) {
    table.rows.push_back({text_cell(map.rows[row])});
    for (const double value : map.values[row]) {
      const bool there = drawable(value);
      table.rows.back().push_back({there ? with_minus(fixed(value, *map.decimals)) : "\xE2\x80\x93", value});
    }
  }
  return table;
}

}  // namespace

std::string visible_name(std::string name) {
  name = replace_all(std::move(name), "\n", "\xE2\x86\xB5");
  name = replace_all(std::move(name), "\t", "\xE2\x87\xA5");
  return replace_all(std::move(name), " ", "\xE2\x90\xA3");
}

Extent heat_ramp(const HeatMap& map) {
  Extent range;
  for (const auto& row : map.values) {
    for (const double value : row) range.include(value);
  }
  if (range.empty()) return {0, 1};
  const double low = map.from_zero ? 0 : range.low;
  const double high = std::min(range.high, map.ramp_end.value_or(range.high));
  return {low, high > low ? high : low + 1};
}

bool exceeds_ramp(const HeatMap& map, double end) {
  for (const auto& row : map.values)
    if (std::any_of(row.begin(), row.end(), [&](double value) { return drawable(value) && value > end; })) return true;
  return false;
}

// The values of a grid; of an image only its range, because the script reads its levels.
std::string heat_hover(const HeatMap& map) {
  std::string values;
  for (const auto& row : map.values) {
    if (!map.decimals) break;
    values += values.empty() ? "[" : ",[";
    for (std::size_t i = 0; i < row.size(); ++i)
      values += concat(i ? "," : "", drawable(row[i]) ? fixed(row[i], *map.decimals) : "null");
    values += ']';
  }
  const Extent ramp = heat_ramp(map);
  return concat(map.decimals ? concat("{\"heat\":[", values, "]")
                             : concat("{\"range\":[", significant(ramp.low, 6), ",", significant(ramp.high, 6), "]",
                                      exceeds_ramp(map, ramp.high) ? ",\"over\":true" : ""),
                ",\"rows\":", name_list(map.rows),
                map.columns == map.rows ? "" : concat(",\"columns\":", name_list(map.columns)), "}");
}

// The whole matrix would be too much to listen to: the strongest cells of each row, of at most `most_rows` rows.
Table heat_table(const HeatMap& map) {
  if (map.decimals) return whole_table(map);
  constexpr std::size_t strongest = 3, most_rows = 32;
  const std::size_t every = (map.rows.size() + most_rows - 1) / most_rows;
  Table table{concat(map.caption.title, ": strongest ", map.column_title, " for each ", map.row_title,
                     every > 1 ? concat(", one row in ", every) : ""),
              {},
              {}};
  table.columns.push_back({map.row_title, "", Align::left, Best::none});
  for (std::size_t i = 1; i <= strongest; ++i) {
    table.columns.push_back({concat(map.column_title, ' ', i), "", Align::left, Best::none});
    table.columns.push_back({concat("value ", i), "", Align::right, Best::none});
  }
  for (std::size_t row = 0; row < map.rows.size(); row += every) {
    std::vector<std::size_t> order;
    for (std::size_t i = 0; i < map.columns.size(); ++i) {
      if (drawable(map.values[row][i])) order.push_back(i);
    }
    std::stable_sort(order.begin(), order.end(),
                     [&](std::size_t a, std::size_t b) { return map.values[row][a] > map.values[row][b]; });
    table.rows.push_back({text_cell(visible_name(map.rows[row]))});
    for (std::size_t i = 0; i < strongest; ++i) {
      const bool there = i < order.size();
      table.rows.back().push_back(text_cell(there ? visible_name(map.columns[order[i]]) : ""));
      table.rows.back().push_back(number_cell(there ? map.values[row][order[i]] : std::nan(""), 3));
    }
  }
  return table;
}

}  // namespace normlab
