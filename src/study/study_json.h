// report.json: the whole analysis of a study for programs.
#pragma once

#include <string>
#include <vector>

#include "study/curve_charts.h"
#include "study/groups.h"
#include "study/verdict.h"

namespace normlab {

std::string make_json(const ChartInput& input, const std::vector<Group>& groups, const Verdict& verdict);

}  // namespace normlab
