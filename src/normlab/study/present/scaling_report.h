// The report of a scaling analysis: scaling.html, scaling.md, fit.json, points.csv and charts/*.svg.
#pragma once

#include <string>
#include <vector>

#include "normlab/study/analyse/scaling_analysis.h"
#include "normlab/study/present/study_report.h"

namespace normlab {

// `command`: the words that made it, to repeat it.
ReportFiles make_scaling_report(const ScalingAnalysis& analysis, const std::vector<std::string>& command);

}  // namespace normlab
