// How a training goes, how its caller steers it, and how it ended.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>

#include "normlab/base/stop.h"

namespace normlab {

enum class Outcome { finished, stopped_early, interrupted, diverged };

struct Progress {
  int64_t step = 0, max_steps = 0;
  double loss = 0.0;
  std::optional<double> val_loss;
  double tokens_per_second = 0.0, seconds_left = 0.0;
};

struct RunControl {
  std::function<void(const Progress&)> show = [](const Progress&) {};  // after each step
  StopToken stop = never_stop;                                         // true: saves and ends, also in an evaluation
  std::function<bool()> take_save_request = never_stop;                // true once for each checkpoint to be written
};

}  // namespace normlab
