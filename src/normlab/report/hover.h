// The values of curves for the script: exact ones, as few as the drawing shows.
#pragma once

#include <string>

#include "normlab/report/curves.h"

namespace normlab {

// JSON: the titles of the x axes, the names of the series, the distinct columns of x, and for each plot its series,
// which refer to the columns by number.
std::string hover_values(const CurveSet& set);

}  // namespace normlab
