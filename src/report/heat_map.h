// A heat map, such as attention weights: a sequential ramp from 0, names along both axes, the mask left blank.
#pragma once

#include <string>
#include <vector>

#include "report/figure.h"

namespace normlab {

struct HeatMap {
  Caption caption;
  std::string row_title, column_title;      // "query", "key"
  std::string value_title;                  // with the unit
  std::vector<std::string> rows, columns;   // names; blanks and line ends are made visible
  std::vector<std::vector<double>> values;  // a list a row; NaN is masked, below 0 is shown as 0
};

Figure figure(const HeatMap& map);

}  // namespace normlab
