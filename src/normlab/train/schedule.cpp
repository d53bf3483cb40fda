#include "normlab/train/schedule.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace normlab {

double learning_rate(const OptimConfig& optim, int64_t step) {
  const double warm = optim.warmup_steps + 1, place = static_cast<double>(step) + 1.0;
  if (step < optim.warmup_steps) return optim.lr * place / warm;
  if (optim.schedule == ScheduleKind::constant || optim.schedule == ScheduleKind::plateau) return optim.lr;
  if (optim.schedule == ScheduleKind::inverse_sqrt) return std::max(optim.min_lr, optim.lr * std::sqrt(warm / place));
  if (step >= optim.decay_steps) return optim.min_lr;
  const double done =
      static_cast<double>(step - optim.warmup_steps) / static_cast<double>(optim.decay_steps - optim.warmup_steps);
  const double left =
      optim.schedule == ScheduleKind::cosine ? 0.5 * (1.0 + std::cos(std::numbers::pi * done)) : 1.0 - done;
  return optim.min_lr + left * (optim.lr - optim.min_lr);
}

bool on_plateau(const std::vector<double>& scores, int patience) {
  const auto last = static_cast<size_t>(patience);
  if (scores.size() <= last) return false;
  return scores.back() < *std::min_element(scores.end() - 1 - patience, scores.end() - 1);
}

}  // namespace normlab
