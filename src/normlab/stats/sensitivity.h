// Learning-rate sensitivity (Wortsman et al. 2023, arXiv 2309.14322): how much a run loses, on average over a
// log-spaced grid of learning rates, against the best rate of the grid.
//
//   mean over rates of min(l(rate), l_0) - l*,   l_0 the loss at the start, l* the least of the clipped losses
#pragma once

#include <span>

namespace normlab {

// What a run at some rate counts as: l_0 when it diverged (a loss that is not finite) or ended above its start.
double clipped_loss(double loss, double initial_loss);

// At least one loss; 0 is a model that does not care.
double learning_rate_sensitivity(std::span<const double> losses, double initial_loss);

}  // namespace normlab
