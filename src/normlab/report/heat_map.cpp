// A heat map: attention weights on a ramp from 0, or a small grid of results with its numbers; what is masked is blank.
#include "normlab/report/heat_map.h"

#include <algorithm>
#include <cmath>

#include "normlab/base/error.h"
#include "normlab/base/text.h"
#include "normlab/report/heat_values.h"
#include "normlab/report/layout.h"
#include "normlab/report/legend.h"
#include "normlab/report/level_image.h"

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

double names_width(const std::vector<std::string>& names) {
  double widest = 0;
  for (const std::string& name : names) widest = std::max(widest, text_width(visible_name(name), font_size));
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

// From 0 to `last`.
std::size_t level_of(double value, Extent ramp, std::size_t last = levels - 1) {
  const double share = std::clamp((value - ramp.low) / (ramp.high - ramp.low), 0.0, 1.0);
  return static_cast<std::size_t>(std::lround(share * static_cast<double>(last)));
}

LevelImage image_of(const HeatMap& map, Extent ramp) {
  LevelImage image{map.columns.size(), map.rows.size(), {}};
  for (const auto& row : map.values)
    for (const double value : row)
      image.levels.push_back(drawable(value) ? static_cast<std::uint8_t>(1 + level_of(value, ramp, 254)) : 0);
  return image;
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
    svg.text(plot.area.left - 8, y + 4.5, shortened(visible_name(map.rows[i]), longest_name, font_size),
             {{"class", "end value"}});
  }
  for (std::size_t i = 0; i < map.columns.size(); i += plot.step) {
    const double x = plot.area.left + (static_cast<double>(i) + 0.5) * plot.cell, y = plot.area.top - 8;
    const std::string name = shortened(visible_name(map.columns[i]), longest_name, font_size);
    if (plot.upright) {
      svg.text(x + 4.5, y, name,
               {{"class", "value"}, {"transform", concat("rotate(-90 ", px(x + 4.5), ' ', px(y), ')')}});
    } else {
      svg.text(x, y, name, {{"class", "middle value"}});
    }
  }
}

// Where the ramp does not start at 0 its title says so.
std::string bar_title(const HeatMap& map, Extent ramp) {
  if (ramp.low == 0) return map.value_title;
  return concat(map.value_title, "; colours start at ", with_minus(significant(ramp.low, 3)), ", not at 0");
}

double draw_colour_bar(Svg& svg, const HeatMap& map, const HeatPlot& plot, const Canvas& canvas,
                       const std::string& filters) {
  constexpr double width = 8, height = 10;
  const Extent ramp = heat_ramp(map);
  double y = plot.area.bottom() + 24;
  for (const std::string& line : wrap(bar_title(map, ramp), canvas.width, font_size)) {
    svg.text(0, y, line, {{"class", "axis-title"}});
    y += line_height;
  }
  y -= 8;
  if (map.decimals) {
    const auto tones = heat_tones(levels);
    for (std::size_t i = 0; i < levels; ++i) {
      open_tone(svg, "cell", tones[i]);
      svg.rect(static_cast<double>(i) * width, y, width, height, "");
      svg.close();
    }
  } else {
    LevelImage image{255, 1, {}};
    for (int level = 1; level <= 255; ++level) image.levels.push_back(static_cast<std::uint8_t>(level));
    draw_levels(svg, {0, y, levels * width, height}, image, filters);
  }
  const int digits = map.decimals ? 4 : 3;
  const auto shown = [&](double end) -> std::string { return end == 0 ? "0" : with_minus(significant(end, digits)); };
  svg.text(0, y + height + 16, shown(ramp.low), {{"class", "value"}});
  svg.text(levels * width, y + height + 16, (exceeds_ramp(map, ramp.high) ? "\xE2\x89\xA5 " : "") + shown(ramp.high),
           {{"class", "end value"}});
  return y + height + 24;
}

Drawing draw(const HeatMap& map, const Canvas& canvas) {
  Svg svg;
  const double top = draw_heading(svg, canvas, map.caption);
  const Extent ramp = heat_ramp(map);
  const HeatPlot plot = make_plot(map, canvas, top);
  const Area& area = plot.area;
  const std::string filters = concat(slug(map.caption.id), canvas.narrow ? "-narrow" : "-wide");
  svg.open("g", {{"class", "heat"},
                 {"aria-hidden", "true"},
                 {"data-frame", concat(px(area.left), ' ', px(area.top), ' ', px(area.width), ' ', px(area.height))}});
  svg.text(area.left, top + 10, concat(map.column_title, " \xE2\x86\x92"), {{"class", "axis-title"}});
  svg.text(0, area.top - 8, concat(map.row_title, " \xE2\x86\x93"), {{"class", "axis-title"}});
  draw_names(svg, map, plot);
  if (map.decimals) {
    draw_cells(svg, map, plot, ramp);
    draw_numbers(svg, map, plot, ramp);
  } else {
    define_level_filters(svg, filters);
    draw_levels(svg, area, image_of(map, ramp), filters);
  }
  const double bottom = draw_colour_bar(svg, map, plot, canvas, filters);
  svg.close();
  return {bottom, svg.take(), {}};
}

}  // namespace

Figure figure(const HeatMap& map) {
  check(map);
  return {map.caption, draw(map, wide_canvas), draw(map, narrow_canvas), {}, heat_hover(map), heat_table(map)};
}

}  // namespace normlab
