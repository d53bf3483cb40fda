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
  // Absent: the ramp starts at 0, and what is below is shown as 0. Present: it starts at the least value, and each
  // cell shows its number with so many decimals.
  std::optional<int> decimals = {};
};

Figure figure(const HeatMap& map);

}  // namespace normlab
