// Points over two numbers, with curves and bands through them: losses against compute, residuals, fits.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "normlab/report/figure.h"
#include "normlab/report/palette.h"

namespace normlab {

struct ScatterSeries {
  std::string label;
  Style style;
  std::vector<double> x, y;                           // markers
  std::vector<double> low = {}, high = {};            // their intervals, as long as y, or empty
  std::vector<double> line_x = {}, line_y = {};       // a curve through rising x
  std::vector<double> band_low = {}, band_high = {};  // around the curve, as long as it, or empty
};

struct ScatterChart {
  Caption caption;
  std::string x_title, y_title;  // with the unit
  std::vector<ScatterSeries> series;
  bool log_x = false, log_y = false;  // unless a value is not positive
  std::optional<double> rule = {};    // a horizontal line, such as zero
};

Figure figure(const ScatterChart& chart);

}  // namespace normlab
