// Scalar twin of cross_entropy.cpp, in double.
#include <algorithm>
#include <cmath>

#include "kernels/scalar/twins.h"

namespace normlab::scalar {

void cross_entropy(const CrossEntropySpec& spec, float* logits, const int64_t* targets, float* loss,
                   RowRange rows) noexcept {
  const double n = static_cast<double>(spec.vocab), smoothing = spec.smoothing;
  for (size_t row = rows.begin; row < rows.end; ++row) {
    float* z = logits + row * spec.vocab;
    loss[row] = 0.0F;
    if (targets[row] < 0) {
      if (spec.gradient) std::fill(z, z + spec.vocab, 0.0F);
      continue;
    }
    const size_t target = static_cast<size_t>(targets[row]);
    const double top = *std::max_element(z, z + spec.vocab);
    double sum = 0.0, mean = 0.0;
    for (size_t v = 0; v < spec.vocab; ++v) {
      sum += std::exp(z[v] - top);
      mean += z[v] / n;
    }
    const double lse = top + std::log(sum);
    loss[row] = static_cast<float>(lse - (1.0 - smoothing) * z[target] - smoothing * mean);
    for (size_t v = 0; v < spec.vocab && spec.gradient; ++v) {
      const double wanted = (v == target ? 1.0 - smoothing : 0.0) + smoothing / n;
      z[v] = static_cast<float>(spec.gradient_scale * (std::exp(z[v] - lse) - wanted));
    }
  }
}

}  // namespace normlab::scalar
