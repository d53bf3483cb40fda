// Training one trial of a study, in this process.
#pragma once

#include <string>
#include <vector>

#include "normlab/study/run/trial.h"
#include "normlab/train/progress.h"

namespace normlab {

// Trains to the end and writes trial.json, or until it is stopped. An error is recorded as a crash and thrown on.
Outcome run_trial(const Trial& trial, const std::vector<std::string>& command, const RunControl& control = {});

}  // namespace normlab
