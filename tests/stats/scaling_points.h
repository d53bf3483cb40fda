// Points drawn from a known scaling law with multiplicative noise.
#pragma once

#include <vector>

#include "draws.h"
#include "normlab/stats/scaling_fit.h"

namespace normlab {

// Besiroglu et al. 2024, arXiv 2404.10102: their refit of Hoffmann et al.'s points.
inline constexpr ScalingLaw chinchilla{
    .floor = 1.82, .a_params = 482, .b_tokens = 2085, .exp_params = 0.348, .exp_tokens = 0.366};

// A ladder: every size with every number of tokens per parameter.
inline std::vector<ScalingPoint> ladder_points(const ScalingLaw& law, int sizes, int horizons, double noise,
                                               uint64_t key) {
  NormalDraws normal(key);
  std::vector<ScalingPoint> points;
  for (int i = 0; i < sizes; ++i)
    for (int j = 0; j < horizons; ++j) {
      const double n_params = 3e7 * std::pow(4, i), n_tokens = n_params * 5 * std::pow(4, j);
      points.push_back({n_params, n_tokens, law.loss(n_params, n_tokens) * std::exp(noise * normal())});
    }
  return points;
}

// Sizes and horizons strewn over the range of Hoffmann et al.'s runs.
inline std::vector<ScalingPoint> strewn_points(const ScalingLaw& law, int count, double noise, uint64_t key) {
  NormalDraws normal(stream_key(key, 1));
  std::vector<ScalingPoint> points;
  for (uint64_t i = 0; i < static_cast<uint64_t>(count); ++i) {
    const double n_params = std::pow(10, 7.6 + 2.6 * draw_uniform(key, 2 * i));
    const double n_tokens = std::pow(10, 9 + 2.4 * draw_uniform(key, 2 * i + 1));
    points.push_back({n_params, n_tokens, law.loss(n_params, n_tokens) * std::exp(noise * normal())});
  }
  return points;
}

}  // namespace normlab
