// What a study reads, what is left to do, and in which order.
#pragma once

#include <string>
#include <vector>

#include "normlab/study/run/progress.h"

namespace normlab {

// What all trials read.
struct StudyText {
  std::string sha256;
  int vocab_size = 0;
  std::vector<double> flops = {};  // floating-point operations of each trial
};
// DataError when a window does not fit into a fold.
StudyText text_of(const Plan& plan);

// As many trials at a time as the cores allow.
int default_jobs(const Plan& plan);

// What is left to do, the longest trials first so that none is left running alone at the end.
std::vector<const Trial*> queue_of(const Plan& plan, const StudyProgress& progress, const std::vector<double>& flops);

// The tuning trials as one part of the plan, before any of them has shown which grids to extend.
struct TuningCost {
  size_t trials = 0;
  double flops_left = 0.0;
};
TuningCost cost_of_tuning(const Plan& plan);

}  // namespace normlab
