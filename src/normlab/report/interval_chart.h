// Paired differences: a mean with its interval in each row, every fold as a faint dot, zero as the baseline.
#pragma once

#include <string>
#include <vector>

#include "normlab/report/figure.h"
#include "normlab/report/palette.h"
#include "normlab/report/scale.h"

namespace normlab {

struct IntervalRow {
  std::string label;
  Style style;
  double mean, low, high;
  std::vector<double> values;           // of the folds
  std::vector<std::string> notes = {};  // one for each of the chart's note titles
};

struct IntervalChart {
  Caption caption;
  std::string axis_title;              // with the unit
  std::string value_name;              // what a single value is: "fold"
  std::string below_zero, above_zero;  // what each side means: "better than p = 2"; the first word
                                       // alone must do where there is no room
  std::vector<std::string> note_titles;
  std::vector<IntervalRow> intervals;
  Extent shared = {};  // the axis covers this as well: that of a neighbouring chart
};

Figure figure(const IntervalChart& chart);

}  // namespace normlab
