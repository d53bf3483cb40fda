// A scaling analysis in words and tables.
#pragma once

#include <string>
#include <vector>

#include "normlab/report/table.h"
#include "normlab/study/analyse/scaling_analysis.h"

namespace normlab {

std::string spoken(const std::string& scheme);  // "the points" where there is no scheme
std::string estimate_text(double value, const Interval& interval, int digits = 3);  // "1.82 (1.80 to 1.84)"

// What was found, the most important sentence first.
std::vector<std::string> scaling_findings(const ScalingAnalysis& analysis);

Table coefficient_table(const ScalingAnalysis& analysis);
Table goodness_table(const ScalingAnalysis& analysis);
Table projection_table(const ScalingAnalysis& analysis);
Table batch_table(const ScalingAnalysis& analysis);
Table run_table(const ScalingAnalysis& analysis);  // points.csv: `normlab fit --points` reads it

// For each scheme, how its intervals were made and why.
std::vector<std::string> bootstrap_texts(const ScalingAnalysis& analysis);

}  // namespace normlab
