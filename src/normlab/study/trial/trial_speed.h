// How fast trials train on this machine, from ten steps of each of as many as will run in parallel.
#pragma once

#include "normlab/study/run/cost.h"

namespace normlab {

// Steps on random tokens; nothing is written.
TrialSpeed trial_speed(const Config& config, int vocab_size, int jobs);

}  // namespace normlab
