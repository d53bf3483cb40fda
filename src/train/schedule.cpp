#include "train/schedule.h"

#include <cmath>
#include <numbers>

namespace normlab {

double learning_rate(const OptimConfig& optim, int64_t step) {
  if (step < optim.warmup_steps) return optim.lr * static_cast<double>(step + 1) / (optim.warmup_steps + 1);
  if (optim.schedule == ScheduleKind::constant) return optim.lr;
  if (step >= optim.decay_steps) return optim.min_lr;
  const double done =
      static_cast<double>(step - optim.warmup_steps) / static_cast<double>(optim.decay_steps - optim.warmup_steps);
  const double left =
      optim.schedule == ScheduleKind::cosine ? 0.5 * (1.0 + std::cos(std::numbers::pi * done)) : 1.0 - done;
  return optim.min_lr + left * (optim.lr - optim.min_lr);
}

}  // namespace normlab
