// A line chart: curves with bands, keys at the line ends, axes that can be switched.
#pragma once

#include <vector>

#include "normlab/report/curves.h"
#include "normlab/report/figure.h"

namespace normlab {

struct LineChart {
  Caption caption;
  std::vector<XAxis> x;  // the first is shown, the others can be switched to
  YAxis y;
  std::vector<Series> series;
};

Figure figure(const LineChart& chart);

}  // namespace normlab
