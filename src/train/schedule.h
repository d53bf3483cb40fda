// The learning rate as a function of the step.
#pragma once

#include "train/config.h"

namespace normlab {

// Of update number `step`, counted from 0: linear warm-up, then cosine, linear or no decay to min_lr.
double learning_rate(const OptimConfig& optim, int64_t step);

}  // namespace normlab
