#include "normlab/ranks/cost_model.h"

#include <algorithm>
#include <cmath>

namespace normlab {

double seconds_of_sums(const RankCosts& costs, int ranks) {
  const double bytes = 2.0 * (ranks - 1) / ranks * costs.gradient_bytes;
  return 2.0 * std::ceil(std::log2(ranks)) * costs.latency + bytes / costs.bandwidth;
}

double seconds_of_step(const RankCosts& costs, int ranks) {
  const double sums = seconds_of_sums(costs, ranks);
  const double late = costs.gradient_bytes > 0.0 ? sums * costs.late_bytes / costs.gradient_bytes : 0.0;
  return costs.compute + std::max(0.0, sums - late - costs.beside) + late;
}

double efficiency(const RankCosts& costs, int ranks) { return costs.compute / seconds_of_step(costs, ranks); }

}  // namespace normlab
