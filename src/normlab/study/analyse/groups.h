// Groups of a grid of two dimensions: the same comparison within each value of the shorter one.
#pragma once

#include <string>
#include <vector>

#include "normlab/study/analyse/analysis.h"
#include "normlab/study/analyse/grid.h"

namespace normlab {

// For p crossed with the initial gain: every p against p = 2 with the same gain.
struct Group {
  std::string label;  // "gain_init = matched"
  Analysis analysis;
};
std::vector<Group> groups_of(const StudyResults& results, const Grid& grid, const GridStyles& styles,
                             const Analysis& whole);

}  // namespace normlab
