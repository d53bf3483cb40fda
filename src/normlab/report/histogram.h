// A histogram: shares of values in bins of equal width, on a linear or a logarithmic axis, which shows the tails.
#pragma once

#include <string>
#include <vector>

#include "normlab/report/figure.h"

namespace normlab {

struct Histogram {
  Caption caption;
  std::string x_title, y_title;  // with the unit
  double low = 0, high = 1;      // of the first and the last bin
  std::vector<double> shares;    // of each bin
};

Figure figure(const Histogram& chart);

}  // namespace normlab
