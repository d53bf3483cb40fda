// A heat map: attention weights on a ramp from 0, or a small grid of results with its numbers; what is masked is blank.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "normlab/report/figure.h"

namespace normlab {

struct HeatMap {
  Caption caption;
  std::string row_title, column_title;      // "query", "key"
  std::string value_title;                  // with the unit
  std::vector<std::string> rows, columns;   // names; blanks and line ends are made visible
  std::vector<std::vector<double>> values;  // one list per row; NaN is masked
  // Each cell shows its number with so many decimals; absent: the map is dense, drawn as an image.
  std::optional<int> decimals = {};
  // The ramp starts at 0, and what is below is shown as 0; else at the least value, and the colour bar says so.
  bool from_zero = true;
  // Where the ramp ends, if not at the largest value: what is above has its last colour.
  std::optional<double> ramp_end = {};
};

Figure figure(const HeatMap& map);

}  // namespace normlab
