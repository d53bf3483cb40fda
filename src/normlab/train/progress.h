// How a training goes, and how it ended.
#pragma once

#include <cstdint>
#include <optional>

namespace normlab {

enum class Outcome { finished, stopped_early, interrupted, diverged };

struct Progress {
  int64_t step = 0, max_steps = 0;
  double loss = 0.0;
  std::optional<double> val_loss;
  double tokens_per_second = 0.0, seconds_left = 0.0;
};

}  // namespace normlab
