// The grid of a study.
#include "normlab/study/analyse/grid.h"

#include <algorithm>

#include "normlab/base/text.h"

namespace normlab {
namespace {

Dimension dimension_of(const Axis& axis, const std::vector<Axis>& axes) {
  const auto short_name = [](const std::string& key) { return key.substr(key.find('.') + 1); };
  const auto alike = std::count_if(axes.begin(), axes.end(),
                                   [&](const Axis& other) { return short_name(other.key) == short_name(axis.key); });
  return {.name = alike > 1 ? axis.key : short_name(axis.key),
          .values = axis.values,
          .numeric = std::all_of(axis.values.begin(), axis.values.end(),
                                 [](const std::string& value) { return parse_number(value).has_value(); })};
}

std::vector<Style> value_styles(const Dimension& dimension, std::optional<size_t> baseline) {
  return dimension.numeric ? ordered_styles(dimension.values.size(), baseline)
                           : category_styles(dimension.values.size(), baseline);
}

}  // namespace

std::string Dimension::label(size_t value) const {
  return name == "scheme" || name == "variant" ? values[value] : concat(name, " = ", values[value]);
}

size_t Grid::variant_at(size_t row, size_t column) const {
  const std::vector<size_t> wanted = {row, column};
  return static_cast<size_t>(std::find(places.begin(), places.end(), wanted) - places.begin());
}

// Variants are listed as a number counts: the last axis changes fastest.
Grid grid_of(const Plan& plan) {
  std::vector<Dimension> all;
  if (!plan.spec.variants.empty()) {
    all.push_back({.name = "variant", .values = {}});
    for (const NamedSettings& named : plan.spec.variants) all.back().values.push_back(named.label);
  }
  for (const Axis& axis : plan.axes) all.push_back(dimension_of(axis, plan.axes));
  Grid grid{.dimensions = {}, .places = std::vector<std::vector<size_t>>(plan.variants.size())};
  size_t repeat = plan.variants.size();
  for (const Dimension& dimension : all) {
    repeat /= dimension.values.size();
    if (dimension.values.size() < 2) continue;
    grid.dimensions.push_back(dimension);
    for (size_t i = 0; i < plan.variants.size(); ++i) grid.places[i].push_back(i / repeat % dimension.values.size());
  }
  return grid;
}

GridStyles styles_of(const Grid& grid, size_t baseline) {
  GridStyles styles;
  if (grid.dimensions.size() != 2) {
    const bool one = grid.dimensions.size() == 1;
    styles.variants = one ? value_styles(grid.dimensions[0], baseline) : category_styles(grid.places.size(), baseline);
    styles.values = styles.variants;
    return styles;
  }
  styles.series = grid.dimensions[1].values.size() > grid.dimensions[0].values.size() ? 1 : 0;
  const size_t other = 1 - styles.series;
  styles.values = value_styles(grid.dimensions[styles.series], grid.places[baseline][styles.series]);
  const auto dashes = category_styles(grid.dimensions[other].values.size());
  for (const auto& place : grid.places) {
    Style style = styles.values[place[styles.series]];
    style.dash = dashes[place[other]].dash;
    style.marker = dashes[place[other]].marker;
    style.baseline = styles.variants.size() == baseline;
    styles.variants.push_back(style);
  }
  return styles;
}

}  // namespace normlab
