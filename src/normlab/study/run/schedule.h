// What a study reads, what is left to do, and in which order.
#pragma once

#include <string>
#include <vector>

#include "normlab/base/stop.h"
#include "normlab/study/run/progress.h"

namespace normlab {

// What all trials read.
struct StudyText {
  std::string sha256;  // empty when it was measured only
  int vocab_size = 0;
  int64_t tokens = 0;      // of language models
  bool estimated = false;  // from the beginning of a long text
};
// The whole text; `stop` ends its tokenisation.
StudyText text_of(const Plan& plan, const StopToken& stop = never_stop);
StudyText measured_text_of(const Plan& plan);  // for a plan, in bounded time

// Floating-point operations of each trial. DataError when a window does not fit into a fold.
std::vector<double> flops_of(const Plan& plan, const StudyText& text);

// As many trials at a time as the cores allow.
int default_jobs(const Plan& plan);

// What is left to do, the longest trials first so that none is left running alone at the end.
std::vector<const Trial*> queue_of(const Plan& plan, const StudyProgress& progress, const std::vector<double>& flops);

// The tuning trials as one part of the plan, before any of them has shown which grids to extend.
struct TuningCost {
  size_t trials = 0;
  double flops_left = 0.0;
};
TuningCost cost_of_tuning(const Plan& plan, const StudyText& text);

}  // namespace normlab
