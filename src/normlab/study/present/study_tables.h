// The tables of a study that are made to be read; study_csv.h has the full ones.
#pragma once

#include "normlab/report/table.h"
#include "normlab/study/present/curve_charts.h"

namespace normlab {

Table loss_table(const ChartInput& input);   // means over folds, ranks, times
Table test_table(const ChartInput& input);   // paired differences, every test
Table speed_table(const ChartInput& input);  // the way to the target

// Every key in which the variants differ, also where the configuration derives its value.
Table config_table(const ChartInput& input);

}  // namespace normlab
