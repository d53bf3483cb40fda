// Training one trial of a study, in this process.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "normlab/study/run/trial.h"
#include "normlab/train/progress.h"

namespace normlab {

// Trains to the end, or until a signal, and writes trial.json. An error is recorded as a crash and thrown on.
Outcome run_trial(const Trial& trial, const std::vector<std::string>& command,
                  const std::function<void(const Progress&)>& show);

}  // namespace normlab
