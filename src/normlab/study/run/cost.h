// What the trials of a plan are and what they cost: sizes, operations, time on one machine and on many.
#pragma once

#include <vector>

#include "normlab/report/table.h"
#include "normlab/study/run/plan.h"

namespace normlab {

// Every value that makes a variant's size and horizon, derived or said: a row a variant.
Table size_table(const Plan& plan, int vocab_size);

// Training operations of each trial, evaluations left out.
std::vector<double> training_flops(const Plan& plan, int vocab_size);

// Of one trial beside others.
struct TrialSpeed {
  double seconds_of_step = 0.0;  // the median
  double flops_per_second = 0.0;
};

// Operations of the busiest of so many slots when the longest trials are taken first.
double busiest_slot(std::vector<double> flops, size_t slots);

}  // namespace normlab
