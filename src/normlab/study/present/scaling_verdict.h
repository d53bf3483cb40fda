// The finding of a scaling analysis, in two sentences.
#pragma once

#include <string>

#include "normlab/study/analyse/scaling_analysis.h"

namespace normlab {

// What the runs show, and what the law extrapolates; with one scheme how well the law fits, and what it recommends.
std::string scaling_verdict(const ScalingAnalysis& analysis);

}  // namespace normlab
