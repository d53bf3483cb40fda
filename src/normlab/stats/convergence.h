// Convergence speed: when a loss curve reaches a target, and how much sooner a rival's does than a baseline's.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "normlab/stats/summary.h"

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

// What a run cost up to the target, or as a whole when it never reached it.
struct Arrival {
  Reached cost = {};
  bool reached = true;
};

enum class Bound { none, at_most, at_least, both };

// Geometric mean over folds of baseline's cost / rival's cost: 1.4 means that the baseline needs 1.4 times as much.
// No fold is dropped: a run that does not reach the target counts with all that it cost, and a rival that does not
// reach it with a ratio of at most 1, as not faster.
struct SpeedUp {
  std::vector<double> ratios = {};        // one per fold, in their order
  size_t only_rival = 0;                  // folds in which only the rival reaches it: their ratio is too low
  size_t only_baseline = 0;               // too high
  size_t neither = 0;                     // too low or too high
  std::optional<double> factor = {};      // absent without folds
  std::optional<Interval> interval = {};  // corrected_resampled_t of the logarithms; absent with fewer than two folds,
                                          // and when a run does not reach the target
  size_t reached() const { return ratios.size() - only_baseline - neither; }  // folds in which the rival does
  Bound bound() const;                                                        // on the factor, from such folds
};
// `test_train_ratio` and `level` as in paired.h.
SpeedUp speed_up(std::span<const Arrival> baseline, std::span<const Arrival> rival, Cost cost, double test_train_ratio,
                 double level = 0.95);

}  // namespace normlab
