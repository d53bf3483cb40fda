// A heat map: attention weights on a ramp from 0, or a small grid of results with its numbers; what is masked is blank.
#include "normlab/report/heat_map.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "normlab/base/error.h"
#include "normlab/base/text.h"
#include "normlab/report/layout.h"
#include "normlab/report/legend.h"
#include "normlab/report/scale.h"

namespace normlab {
namespace {

constexpr std::size_t levels = 24;
constexpr double largest_cell = 30, widest_map = 600, longest_name = 110, name_space = 12;
constexpr double number_cell_width = 84, number_cell_height = 40;

void check(const HeatMap& map) {
  bool fits = map.values.size() == map.rows.size();
  for (const auto& row : map.values) fits = fits && row.size() == map.columns.size();
  if (!fits) {
    throw Error("heat map", concat("the values of \"", map.caption.title, "\" do not fit; expected ", map.rows.size(),
                                   " rows of ", map.columns.size(), " values."));
  }
}

std::string visible(std::string name) {
  name = replace_all(std::move(name), "\n", "\xE2\x86\xB5");
  name = replace_all(std::move(name), "\t", "\xE2\x87\xA5");
  return replace_all(std::move(name), " ", "\xE2\x90\xA3");
}

// What the ends of the ramp stand for.
Extent ramp_range(const HeatMap& map) {
  Extent range;
  for (const auto& row : map.values) {
    for (const double value : row) range.include(value);
  }
  if (range.empty()) return {0, 1};
  if (map.decimals) return {range.low, range.high > range.low ? range.high : range.low + 1};
  return {0, range.high > 0 ? range.high : 1};
}

double names_width(const std::vector<std::string>& names) {
  double widest = 0;
  for (const std::string& name : names) widest = std::max(widest, text_width(visible(name), font_size));
  return std::min(widest, longest_name);
}

struct HeatPlot {
  Area area;
  double cell, cell_height;
  std::size_t step;  // every name where there is room, else every second, third ...
  bool upright;      // column names are written upwards
};

HeatPlot make_plot(const HeatMap& map, const Canvas& canvas, double top) {
  const double left = std::max(names_width(map.rows), text_width(map.row_title, font_size) + 12) + 12;
  const auto columns = std::max(1.0, static_cast<double>(map.columns.size()));
  const double room = map.decimals ? canvas.width - left - 2 : std::min(widest_map, canvas.width - left - 2);
  const double cell = std::min(map.decimals ? number_cell_width : largest_cell, room / columns);
  const double cell_height = map.decimals ? number_cell_height : cell;
  const auto step = static_cast<std::size_t>(std::ceil(name_space / cell));
  const bool upright = names_width(map.columns) > cell * static_cast<double>(step);
  const double above = line_height + (upright ? names_width(map.columns) + 8 : line_height);
  return {{left, top + above, cell * columns, cell_height * static_cast<double>(map.rows.size())},
          cell,
          cell_height,
          step,
          upright};
}

std::size_t level_of(double value, Extent ramp) {
  const double share = std::clamp((value - ramp.low) / (ramp.high - ramp.low), 0.0, 1.0);
  return static_cast<std::size_t>(std::lround(share * (levels - 1)));
}

// One path a level instead of one element a cell: a tenth of the size.
void draw_cells(Svg& svg, const HeatMap& map, const HeatPlot& plot, Extent ramp) {
  std::vector<PathData> paths(levels);
  for (std::size_t row = 0; row < map.rows.size(); ++row) {
    for (std::size_t column = 0; column < map.columns.size(); ++column) {
      const double value = map.values[row][column];
      if (!drawable(value)) continue;
      const double x = plot.area.left + static_cast<double>(column) * plot.cell,
                   y = plot.area.top + static_cast<double>(row) * plot.cell_height;
      paths[level_of(value, ramp)].box(x, y, plot.cell, plot.cell_height);
    }
  }
  const auto tones = heat_tones(levels);
  for (std::size_t i = 0; i < levels; ++i) {
    if (paths[i].empty()) continue;
    svg.element("path", {{"class", "tone cell"},
                         {"color", tones[i].light},
                         {"style", "--dark:" + tones[i].dark},
                         {"d", paths[i].take()}});
  }
}

// The number in each cell; strong cells need the paper's colour to be read on.
void draw_numbers(Svg& svg, const HeatMap& map, const HeatPlot& plot, Extent ramp) {
  for (std::size_t row = 0; row < map.rows.size(); ++row) {
    for (std::size_t column = 0; column < map.columns.size(); ++column) {
      const double value = map.values[row][column];
      if (!drawable(value)) continue;
      const std::string text = with_minus(fixed(value, *map.decimals));
      if (text_width(text, font_size) > plot.cell - 2) return;  // hovering and the table have them
      svg.text(plot.area.left + (static_cast<double>(column) + 0.5) * plot.cell,
               plot.area.top + (static_cast<double>(row) + 0.5) * plot.cell_height + 4.5, text,
               {{"class", level_of(value, ramp) > levels * 5 / 11 ? "middle on-strong" : "middle"}});
    }
  }
}

void draw_names(Svg& svg, const HeatMap& map, const HeatPlot& plot) {
  for (std::size_t i = 0; i < map.rows.size(); i += plot.step) {
    const double y = plot.area.top + (static_cast<double>(i) + 0.5) * plot.cell_height;
    svg.text(plot.area.left - 8, y + 4.5, shortened(visible(map.rows[i]), longest_name, font_size),
             {{"class", "end value"}});
  }
  for (std::size_t i = 0; i < map.columns.size(); i += plot.step) {
    const double x = plot.area.left + (static_cast<double>(i) + 0.5) * plot.cell, y = plot.area.top - 8;
    const std::string name = shortened(visible(map.columns[i]), longest_name, font_size);
    if (plot.upright) {
      svg.text(x + 4.5, y, name,
               {{"class", "value"}, {"transform", concat("rotate(-90 ", px(x + 4.5), ' ', px(y), ')')}});
    } else {
      svg.text(x, y, name, {{"class", "middle value"}});
    }
  }
}

double draw_colour_bar(Svg& svg, const HeatMap& map, const HeatPlot& plot, Extent ramp) {
  constexpr double width = 8, height = 10;
  const double y = plot.area.bottom() + 40, left = plot.area.left;
  const auto tones = heat_tones(levels);
  for (std::size_t i = 0; i < levels; ++i) {
    open_tone(svg, "cell", tones[i]);
    svg.rect(left + static_cast<double>(i) * width, y, width, height, "");
    svg.close();
  }
  const double right = left + levels * width;
  svg.text(left, y + height + 16, map.decimals ? with_minus(significant(ramp.low, 4)) : "0", {{"class", "value"}});
  svg.text(right, y + height + 16, with_minus(significant(ramp.high, map.decimals ? 4 : 3)), {{"class", "end value"}});
  svg.text(left, y - 8, map.value_title, {{"class", "axis-title"}});
  return y + height + 24;
}

Drawing draw(const HeatMap& map, const Canvas& canvas) {
  Svg svg;
  const double top = draw_heading(svg, canvas, map.caption);
  const Extent ramp = ramp_range(map);
  const HeatPlot plot = make_plot(map, canvas, top);
  const Area& area = plot.area;
  svg.open("g", {{"class", "heat"},
                 {"aria-hidden", "true"},
                 {"data-frame", concat(px(area.left), ' ', px(area.top), ' ', px(area.width), ' ', px(area.height))}});
  svg.text(area.left, top + 10, concat(map.column_title, " \xE2\x86\x92"), {{"class", "axis-title"}});
  svg.text(0, area.top - 8, concat(map.row_title, " \xE2\x86\x93"), {{"class", "axis-title"}});
  draw_names(svg, map, plot);
  draw_cells(svg, map, plot, ramp);
  if (map.decimals) draw_numbers(svg, map, plot, ramp);
  const double bottom = draw_colour_bar(svg, map, plot, ramp);
  svg.close();
  return {bottom, svg.take(), {}};
}

std::string hover(const HeatMap& map) {
  const auto shown = [](const std::vector<std::string>& names) {
    std::vector<std::string> texts;
    for (const std::string& name : names) texts.push_back(visible(name));
    return nlohmann::json(texts).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  };
  std::string values;
  for (const auto& row : map.values) {
    values += values.empty() ? "[" : ",[";
    for (std::size_t i = 0; i < row.size(); ++i)
      values +=
          concat(i ? "," : "",
                 drawable(row[i]) ? (map.decimals ? fixed(row[i], *map.decimals) : significant(row[i], 3)) : "null");
    values += ']';
  }
  return concat("{\"heat\":[", values, "],\"rows\":", shown(map.rows), ",\"columns\":", shown(map.columns), "}");
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

// The whole matrix would be too much to listen to: the strongest cells of each row.
Table data_table(const HeatMap& map) {
  if (map.decimals) return whole_table(map);
  constexpr std::size_t strongest = 3;
  Table table{concat(map.caption.title, ": strongest ", map.column_title, " for each ", map.row_title), {}, {}};
  table.columns.push_back({map.row_title, "", Align::left, Best::none});
  for (std::size_t i = 1; i <= strongest; ++i) {
    table.columns.push_back({concat(map.column_title, ' ', i), "", Align::left, Best::none});
    table.columns.push_back({concat("value ", i), "", Align::right, Best::none});
  }
  for (std::size_t row = 0; row < map.rows.size(); ++row) {
    std::vector<std::size_t> order;
    for (std::size_t i = 0; i < map.columns.size(); ++i) {
      if (drawable(map.values[row][i])) order.push_back(i);
    }
    std::stable_sort(order.begin(), order.end(),
                     [&](std::size_t a, std::size_t b) { return map.values[row][a] > map.values[row][b]; });
    table.rows.push_back({text_cell(visible(map.rows[row]))});
    for (std::size_t i = 0; i < strongest; ++i) {
      const bool there = i < order.size();
      table.rows.back().push_back(text_cell(there ? visible(map.columns[order[i]]) : ""));
      table.rows.back().push_back(number_cell(there ? map.values[row][order[i]] : std::nan(""), 3));
    }
  }
  return table;
}

}  // namespace

Figure figure(const HeatMap& map) {
  check(map);
  return {map.caption, draw(map, wide_canvas), draw(map, narrow_canvas), {}, hover(map), data_table(map)};
}

}  // namespace normlab
