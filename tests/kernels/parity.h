// What the kernel tests share: inputs and the criterion of parity.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "kernels/every_target.h"
#include "normlab/base/random.h"

namespace normlab::testing {

// The sizes every row-wise kernel is tested with: around whole vectors of each instruction set.
inline const std::vector<size_t> kSizes = {1, 7, 8, 31, 33, 64, 127, 257, 384};

// Rows enough that the largest rounding error of a plain computation is not a lucky one.
inline size_t rows_for(size_t cols) { return std::max<size_t>(5, 600 / cols); }

// Sums of four uniforms: bell-shaped, deterministic.
inline std::vector<float> random_values(uint64_t seed, size_t n, double scale = 1.0) {
  std::vector<float> values(n);
  for (size_t i = 0; i < n; ++i) {
    double sum = -2.0;
    for (uint64_t k = 0; k < 4; ++k) sum += draw_uniform(stream_key(seed), 4 * i + k);
    values[i] = static_cast<float>(1.7 * scale * sum);
  }
  return values;
}

template <class T>
double largest_of(const std::vector<T>& values) {
  double largest = 0.0;
  for (const T value : values) largest = std::max(largest, std::abs(static_cast<double>(value)));
  return largest;
}

// The largest error of `got` is at most `factor` times that of the plain float computation, or one rounding of the
// largest value (for sums that may cancel: of the largest `term`), whichever is more.
inline void expect_parity(const std::string& what, const std::vector<float>& got, const std::vector<double>& truth,
                          const std::vector<float>& plain, double factor, double term = 0.0) {
  ASSERT_EQ(got.size(), truth.size()) << what;
  double got_error = 0.0, plain_error = 0.0;
  for (size_t i = 0; i < got.size(); ++i) {
    ASSERT_TRUE(std::isfinite(got[i])) << what << " at " << i;
    got_error = std::max(got_error, std::abs(got[i] - truth[i]));
    plain_error = std::max(plain_error, std::abs(plain[i] - truth[i]));
  }
  const double largest = std::max(largest_of(truth), term);
  EXPECT_LE(got_error, std::max(factor * plain_error, 0x1p-23 * largest)) << what << ", largest value " << largest;
}

// d/d values[i] of loss() by central differences, at every `stride`-th element, against `gradient`. The loss is
// computed in double.
template <class Loss>
void expect_gradient(const std::string& what, std::vector<float>& values, const std::vector<double>& gradient,
                     const Loss& loss, size_t stride = 1) {
  const double largest = largest_of(gradient);
  for (size_t i = 0; i < values.size(); i += stride) {
    const float middle = values[i];
    const float step = 1e-3F * std::max(std::abs(middle), 0.1F);
    values[i] = middle + step;
    const float above_at = values[i];
    const double above = loss();
    values[i] = middle - step;
    const double slope = (above - loss()) / (static_cast<double>(above_at) - values[i]);
    values[i] = middle;
    EXPECT_NEAR(slope, gradient[i], 1e-5 * largest) << what << " at " << i;
  }
}

template <class A, class B>
double dot(const std::vector<A>& a, const std::vector<B>& b) {
  double sum = 0.0;
  for (size_t i = 0; i < a.size(); ++i) sum += static_cast<double>(a[i]) * static_cast<double>(b[i]);
  return sum;
}

}  // namespace normlab::testing
