// A scaling analysis as JSON.
#pragma once

#include <string>

#include "normlab/study/analyse/scaling_analysis.h"

namespace normlab {

// One scheme's coefficients stand at the top; several are a list under "schemes".
std::string scaling_json(const ScalingAnalysis& analysis);

}  // namespace normlab
