// The curves of a study: validation loss averaged over folds, and fold by fold.
#pragma once

#include "normlab/report/figure.h"
#include "normlab/study/analyse/analysis.h"
#include "normlab/study/analyse/grid.h"

namespace normlab {

struct ChartInput {
  const StudyResults& results;
  const Analysis& analysis;
  const Grid& grid;
  const GridStyles& styles;
};

// One chart of all variants; in a grid of two dimensions a panel for each value of the shorter one.
Figure loss_chart(const ChartInput& input);
Figure loss_chart(const ChartInput& input, const Caption& caption);  // all variants in one, with its own words
Figure block_panels(const ChartInput& input);

}  // namespace normlab
