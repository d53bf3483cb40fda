// Convergence speed: when a loss curve reaches a target, and how much sooner a rival's does than a baseline's.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "stats/summary.h"

namespace normlab {

struct CurvePoint {
  double step = 0;
  double seconds = 0;
  double loss = 0;
};

struct Reached {
  double step = 0;
  double seconds = 0;
};

enum class Smoothing { none, running_minimum };

// The first moment at which the curve, linear between its points, is at or below `target`; nothing when it never
// is. A curve that starts there is reached at its first point. Steps must ascend, seconds must not descend.
std::optional<Reached> first_reached(std::span<const CurvePoint> curve, double target,
                                     Smoothing smoothing = Smoothing::none);

enum class Cost { steps, seconds };

// Geometric mean over folds of baseline's cost / rival's cost: 1.4 means that the baseline needs 1.4 times as much.
// Only folds in which both reach the target have a ratio; the others are counted, as they may say more.
struct SpeedUp {
  std::vector<double> ratios;  // of the folds in which both reach the target, in their order
  size_t only_rival = 0;       // folds in which only the rival reaches it
  size_t only_baseline = 0;
  size_t neither = 0;
  std::optional<double> factor;      // absent without ratios
  std::optional<Interval> interval;  // corrected_resampled_t of the logarithms; absent with fewer than two ratios
};
// `test_train_ratio` as in paired.h.
SpeedUp speed_up(std::span<const std::optional<Reached>> baseline, std::span<const std::optional<Reached>> rival,
                 Cost cost, double test_train_ratio);

}  // namespace normlab
