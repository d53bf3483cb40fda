// normlab compare --budget: a study without a recipe, planned for the text and the time.
#pragma once

#include <string>
#include <vector>

#include "normlab/cli/verbs.h"
#include "normlab/study/run/plan.h"
#include "normlab/study/run/schedule.h"

namespace normlab {

struct BudgetOptions {
  const ConfigOptions& config;  // names the text
  std::string time;             // "15m"
  std::vector<std::string> schemes;
  int jobs = 0;  // 0: as many as the cores allow
};
// Measures the speed of this machine, by normlab-torch.
StudySpec study_of_budget(const BudgetOptions& options);

// Model, steps and trainings of its plan, in two lines on standard error.
void show_budget(const Plan& plan, const StudyText& text, const std::string& time);

}  // namespace normlab
