// The runner: trials in parallel, each in a process of its own.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "normlab/base/stop.h"
#include "normlab/study/run/trial.h"

namespace normlab {

struct RunnerOptions {
  std::filesystem::path program;  // that has the verb `trial`; it starts with signals held (base/signal_mask.h)
  int jobs = 1;
  int nice = 0;
  StopToken stop = never_stop;
};

enum class TrialEnd { recorded, stopped, in_use };

struct RunnerEvents {
  // After a trial, with what its folder says now. `in_use`: another process kept running it until the end.
  std::function<void(const Trial&, TrialEnd)> ended;
  // A trial was killed or stopped from outside, "killed by signal 9", and is tried once more.
  std::function<void(const Trial&, const std::string& how)> retried;
  // Several times a second.
  std::function<void(const std::vector<const Trial*>& running)> tick;
};

// Runs `PROGRAM trial DIR N` for each trial in the order given, until all have ended or `stop` asks to, which is
// passed on as a SIGTERM. A child lives no longer than this process: when that is killed, it saves and ends too. What a
// child prints is in <folder of the trial>.log.
void run_trials(const Plan& plan, const std::vector<const Trial*>& queue, const RunnerOptions& options,
                const RunnerEvents& events);

// Runs `PROGRAM trial DIR --all`, for a study that other processes work on too, until all trials have ended or `stop`
// asks to. It prints where this process does. How the trials ended is in their folders.
void run_free_trials(const std::filesystem::path& folder, const RunnerOptions& options);

}  // namespace normlab
