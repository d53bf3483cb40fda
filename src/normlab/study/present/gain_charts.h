// The learned gains and p of a study as charts: those of each layer, against the values of a dimension.
#pragma once

#include <vector>

#include "normlab/study/present/curve_charts.h"

namespace normlab {

// One chart, or in a grid of two dimensions one for each value of the shorter; none when nothing was learned.
std::vector<Figure> gain_charts(const ChartInput& input);

}  // namespace normlab
