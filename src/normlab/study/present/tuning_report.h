// What the report says of [study.tune]: the loss of every variant at every value, the value it got, and the cost.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "normlab/report/figure.h"
#include "normlab/study/present/curve_charts.h"

namespace normlab {

// Loss against the tuned value, one line per variant; none without tuning trials that have ended.
std::optional<Figure> tuning_chart(const ChartInput& input);
Table tuning_table(const ChartInput& input);
std::string tuning_text(const ChartInput& input);

// A sentence for each variant whose best value lies at an edge of its grid, and one while the tuning has not ended.
std::vector<std::string> tuning_notices(const StudyResults& results);

}  // namespace normlab
