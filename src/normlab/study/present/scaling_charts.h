// Charts of a scaling analysis.
#pragma once

#include <vector>

#include "normlab/report/figure.h"
#include "normlab/study/analyse/scaling_analysis.h"

namespace normlab {

// Loss against compute with the frontiers, iso-operation curves of each scheme, scheme against scheme, residuals,
// critical batch against loss; those for which there is something to draw.
std::vector<Figure> frontier_charts(const ScalingAnalysis& analysis);
std::vector<Figure> residual_charts(const ScalingAnalysis& analysis);
std::vector<Figure> batch_charts(const ScalingAnalysis& analysis);

}  // namespace normlab
