// The tuning trials of [study.tune]: an ordinary study in DIR/tuning, and what it has found.
#pragma once

#include "normlab/study/run/plan.h"

namespace normlab {

// Refuses a key or a seed that the study uses itself.
void check_tune(const Plan& plan);

// What DIR/tuning says of each variant of the plan.
std::vector<TunedVariant> tuned_variants(const Plan& plan);

// The tuning trials as far as they are known: every value for every variant, and once all of these have ended, the
// values that extend grids.
Plan tuning_plan(const Plan& plan);

}  // namespace normlab
