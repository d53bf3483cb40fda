// What a study compares, for make_plan(): the lists of its file, and each combination of their values.
#pragma once

#include "normlab/study/run/plan.h"

namespace normlab {

// The lists of the study, without those of folds and seeds; UsageError for a key that all trials share.
std::vector<Axis> axes_of(const StudySpec& spec);
// Each [[variant]], or one without a name, with each combination of the axes' values; UsageError for fewer than two.
std::vector<Variant> variants_of(const StudySpec& spec, const std::vector<Axis>& axes);
// UsageError for more than a study may have, before anything of that size is made.
void require_count(size_t count, const char* of);

}  // namespace normlab
