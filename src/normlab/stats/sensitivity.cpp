#include "normlab/stats/sensitivity.h"

#include <algorithm>
#include <cmath>

#include "normlab/base/error.h"

namespace normlab {

double clipped_loss(double loss, double initial_loss) {
  return std::isfinite(loss) ? std::min(loss, initial_loss) : initial_loss;
}

double learning_rate_sensitivity(std::span<const double> losses, double initial_loss) {
  if (losses.empty() || !std::isfinite(initial_loss))
    throw Error("sensitivity", "expected a finite initial loss and at least one rate.");
  double sum = 0.0, best = initial_loss;
  for (const double loss : losses) {
    sum += clipped_loss(loss, initial_loss);
    best = std::min(best, clipped_loss(loss, initial_loss));
  }
  return sum / static_cast<double>(losses.size()) - best;
}

}  // namespace normlab
