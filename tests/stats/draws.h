// Draws for the simulations: standard normal values by index, and the margin that a simulated rate may have.
#pragma once

#include <cmath>
#include <cstdint>
#include <numbers>

#include "normlab/base/random.h"

namespace normlab {

// Values 0, 1, 2 ... of one stream, by Box and Muller.
class NormalDraws {
 public:
  explicit NormalDraws(uint64_t key) : key_(key) {}
  double operator()() {
    const double radius = std::sqrt(-2 * std::log1p(-draw_uniform(key_, index_)));
    const double angle = 2 * std::numbers::pi * draw_uniform(key_, index_ + 1);
    index_ += 2;
    return radius * std::cos(angle);
  }

 private:
  uint64_t key_;
  uint64_t index_ = 0;
};

// Three standard errors of a rate measured in so many simulations.
inline double sampling_error(double rate, int simulations) { return 3 * std::sqrt(rate * (1 - rate) / simulations); }

}  // namespace normlab
