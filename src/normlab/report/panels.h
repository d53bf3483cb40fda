// Panels: small line charts side by side that share their axes.
#pragma once

#include <string>
#include <vector>

#include "normlab/report/curves.h"
#include "normlab/report/figure.h"

namespace normlab {

struct Panel {
  std::string title;
  std::vector<Series> series;  // the same label means the same series in every panel
};

struct Panels {
  Caption caption;
  std::vector<XAxis> x;
  YAxis y;
  std::vector<Panel> panels;
  std::size_t most_columns = 5;  // in a wide window
};

Figure figure(const Panels& chart);

}  // namespace normlab
