// Box plots: median, quartiles, whiskers to 1.5 x IQR, outliers as dots, the mean as a diamond.
#pragma once

#include <string>
#include <vector>

#include "normlab/report/figure.h"
#include "normlab/report/palette.h"

namespace normlab {

struct Box {
  std::string label;
  Style style;
  std::vector<double> values;           // what is not finite is left out
  std::vector<std::string> notes = {};  // one for each of the chart's note titles
};

struct BoxChart {
  Caption caption;
  std::string axis_title;  // with the unit
  std::string value_name;  // what a single value is: "fold", "trial"
  std::vector<Box> boxes;
  std::vector<std::string> note_titles = {};
};

Figure figure(const BoxChart& chart);

}  // namespace normlab
