// The full tables of a study: summary.csv and trials.csv.
#pragma once

#include "normlab/report/table.h"
#include "normlab/study/present/curve_charts.h"

namespace normlab {

// In both, columns of times come last: the others are the same, byte for byte, whenever the results are.
Table summary_table(const ChartInput& input);  // one row per variant
Table trial_table(const ChartInput& input);    // one row per trial

}  // namespace normlab
