// The results of a study as charts: paired differences, training time, a grid of two dimensions.
#pragma once

#include <optional>
#include <vector>

#include "normlab/study/analyse/groups.h"
#include "normlab/study/present/curve_charts.h"

namespace normlab {

Figure difference_chart(const ChartInput& input);
std::vector<Figure> group_charts(const ChartInput& input, const std::vector<Group>& groups);  // on one axis
Figure time_chart(const ChartInput& input);
// Mean final loss over a grid of two dimensions.
std::optional<Figure> loss_map(const ChartInput& input);

}  // namespace normlab
