// The report of a scaling analysis: scaling.html, scaling.md, fit.json, points.csv and charts/*.svg.
#pragma once

#include <string>
#include <vector>

#include "study/scaling_analysis.h"
#include "study/study_report.h"

namespace normlab {

// `command`: the words that made it, to repeat it.
ReportFiles make_scaling_report(const ScalingAnalysis& analysis, const std::vector<std::string>& command);

}  // namespace normlab
