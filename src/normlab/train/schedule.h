// The learning rate as a function of the step.
#pragma once

#include "normlab/config/config.h"

namespace normlab {

// Of update number `step`, counted from 0: linear warm-up, then cosine, linear or no decay to min_lr, or the inverse
// square root of the step. A plateau's decays come on top: they depend on the scores.
double learning_rate(const OptimConfig& optim, int64_t step);

// Whether the last score is below each of the `patience` before it (the rule of the QKNorm authors).
bool on_plateau(const std::vector<double>& scores, int patience);

}  // namespace normlab
