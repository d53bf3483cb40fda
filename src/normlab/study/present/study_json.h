// report.json: the whole analysis of a study for programs.
#pragma once

#include <string>
#include <vector>

#include "normlab/study/analyse/groups.h"
#include "normlab/study/present/curve_charts.h"
#include "normlab/study/present/verdict.h"

namespace normlab {

std::string make_json(const ChartInput& input, const std::vector<Group>& groups, const Verdict& verdict);

}  // namespace normlab
