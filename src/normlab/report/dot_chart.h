// Values over ordered categories: the gain of each layer against p, with intervals, and folds as faint dots.
#pragma once

#include <string>
#include <vector>

#include "normlab/report/figure.h"
#include "normlab/report/palette.h"

namespace normlab {

struct DotSeries {
  std::string label;
  Style style;
  std::vector<double> mean;                      // one for each category; NaN leaves a gap
  std::vector<double> low = {}, high = {};       // the intervals, as long as the mean, or empty
  std::vector<std::vector<double>> values = {};  // of the folds in each category, or empty
};

struct DotChart {
  Caption caption;
  std::vector<std::string> categories;
  std::string x_title, y_title;
  std::vector<DotSeries> series;
  bool log = false;  // a logarithmic axis, unless a value is not positive
};

Figure figure(const DotChart& chart);

}  // namespace normlab
