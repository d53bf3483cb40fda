// Critical batch size, from the steps S that each batch size B needs to reach a loss (McCandlish et al. 2018, arXiv
// 1812.06162):
//
//   S = S_min + T_min / B,   tokens T = S B = T_min + S_min B,   B_critical = T_min / S_min
//
// Below B_critical twice the batch almost halves the steps; above it, it mostly costs tokens.
#pragma once

#include <span>

#include "normlab/stats/scaling_fit.h"

namespace normlab {

struct BatchPoint {
  double batch = 0;  // tokens per step
  double steps = 0;
};

struct BatchLaw {
  double steps_min = 0, tokens_min = 0;
  double critical() const { return tokens_min / steps_min; }
  double steps(double batch) const { return steps_min + tokens_min / batch; }
};

inline constexpr size_t least_batches = 4;

// The bootstrap is that of residuals, whatever the options: a handful of points can neither show unequal variances nor
// be drawn with replacement. DataError for fewer than 4 different batch sizes, or numbers that are not positive.
LawFit<BatchLaw> fit_critical_batch(std::span<const BatchPoint> points, const FitOptions& options = {});

}  // namespace normlab
