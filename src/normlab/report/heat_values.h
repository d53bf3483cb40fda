// The values of a heat map: the range of its ramp, its table, and what the script shows on hover.
#pragma once

#include "normlab/report/heat_map.h"
#include "normlab/report/scale.h"

namespace normlab {

std::string visible_name(std::string name);         // blanks and line ends as signs
Extent heat_ramp(const HeatMap& map);               // what the ends of the ramp stand for
bool exceeds_ramp(const HeatMap& map, double end);  // whether a value is above the end of the ramp
std::string heat_hover(const HeatMap& map);         // JSON
Table heat_table(const HeatMap& map);

}  // namespace normlab
