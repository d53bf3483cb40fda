// Row transforms alone; their gradients are tested through attention.
#include "normlab/kernels/qk_rows.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "kernels/every_target.h"
#include "kernels/scalar/qk_rows.h"
#include "normlab/base/random.h"

namespace normlab::testing {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

std::vector<float> uniform(size_t count, uint64_t key) {
  std::vector<float> x(count);
  for (size_t i = 0; i < count; ++i) x[i] = static_cast<float>(4.0 * draw_uniform(key, i) - 2.0);
  return x;
}

double lp(const float* x, ptrdiff_t d, double p) {
  double sum = 0.0, most = 0.0;
  for (ptrdiff_t h = 0; h < d; ++h) {
    sum += std::pow(std::abs(static_cast<double>(x[h])), p);
    most = std::max(most, std::abs(static_cast<double>(x[h])));
  }
  return std::isinf(p) ? most : std::pow(sum, 1.0 / p);
}

TEST(QkRows, RowsHaveUnitNorm) {
  for (float p : {0.5F, 1.0F, 1.5F, 2.0F, 2.5F, 3.0F, 3.14159265F, 3.5F, 4.0F, 8.0F, 64.0F, kInfinity})
    for (ptrdiff_t d : {1, 8, 15, 64, 256})
      on_every_target([&] {
        const ptrdiff_t rows = 19, stride = d + 3;
        const std::vector<float> x = uniform(static_cast<size_t>(rows * stride), 5);
        std::vector<float> y(x.size(), 7.0F);
        transform_rows({.norm = QkNorm::lp, .p = p}, {}, {x.data(), stride}, rows, d, {y.data(), stride});
        for (ptrdiff_t r = 0; r < rows; ++r) {
          EXPECT_NEAR(lp(&y[static_cast<size_t>(r * stride)], d, static_cast<double>(p)), 1.0, 1e-6) << p << " " << d;
          EXPECT_EQ(y[static_cast<size_t>(r * stride + d)], 7.0F) << "written between rows";
        }
      });
}

TEST(QkRows, ExtremeRowsKeepTheirDirection) {
  // A row times any power of two has the same unit vector, up to where eps clamps.
  for (float p : {0.5F, 1.0F, 2.0F, 2.5F, 3.14159265F, 64.0F, kInfinity})
    on_every_target([&] {
      const std::vector<float> x = uniform(32, 6);
      std::vector<float> y(32), scaled(32), z(32);
      transform_rows({.norm = QkNorm::lp, .p = p}, {}, {x.data(), 32}, 1, 32, {y.data(), 32});
      for (float factor : {0x1p100F, 0x1p-30F}) {
        for (size_t i = 0; i < 32; ++i) scaled[i] = x[i] * factor;
        transform_rows({.norm = QkNorm::lp, .p = p, .eps = 1e-30F}, {}, {scaled.data(), 32}, 1, 32, {z.data(), 32});
        for (size_t i = 0; i < 32; ++i) EXPECT_NEAR(z[i], y[i], 3e-7F * std::abs(y[i])) << p << " " << factor;
      }
    });
}

TEST(QkRows, EpsClampsShortRows) {
  const std::vector<float> x{3e-8F, -4e-8F, 0.0F, 0.0F};
  std::vector<float> y(4);
  on_every_target([&] {
    transform_rows({.norm = QkNorm::lp, .p = 2.0F, .eps = 1e-6F}, {}, {x.data(), 4}, 1, 4, {y.data(), 4});
    EXPECT_FLOAT_EQ(y[0], 3e-2F);
    EXPECT_FLOAT_EQ(y[1], -4e-2F);
    EXPECT_EQ(y[2], 0.0F);
  });
}

TEST(QkRows, LayerNormHasNoMeanAndUnitVariance) {
  const std::vector<float> x = uniform(24, 9);
  std::vector<float> y(24);
  on_every_target([&] {
    transform_rows({.norm = QkNorm::layer, .eps = 0.0F}, {}, {x.data(), 24}, 1, 24, {y.data(), 24});
    double sum = 0.0, square = 0.0;
    for (float value : y) sum += static_cast<double>(value), square += static_cast<double>(value * value);
    EXPECT_NEAR(sum, 0.0, 1e-5);
    EXPECT_NEAR(square / 24.0, 1.0, 1e-6);
  });
}

TEST(QkRows, TwinAgreesOnEveryInstructionSet) {
  const ptrdiff_t rows = 21, d = 20;
  const std::vector<float> x = uniform(static_cast<size_t>(rows * d), 11), gain = uniform(20, 12),
                           bias = uniform(20, 13);
  std::vector<float> cos, sin;
  for (int i = 0; i < rows * d / 2; ++i)
    cos.push_back(std::cos(static_cast<float>(i))), sin.push_back(std::sin(static_cast<float>(i)));
  for (QkOrder order : {QkOrder::after_rope, QkOrder::before_rope})
    for (RopePairing pairing : {RopePairing::interleaved, RopePairing::half}) {
      const RowTransform t{
          .norm = QkNorm::rms, .eps = 1e-5F, .order = order, .pairing = pairing, .cos = cos.data(), .sin = sin.data()};
      std::vector<float> want(x.size()), got(x.size());
      scalar::transform_rows(t, {gain.data(), bias.data()}, {x.data(), d}, rows, d, {want.data(), d});
      on_every_target([&] {
        transform_rows(t, {gain.data(), bias.data()}, {x.data(), d}, rows, d, {got.data(), d});
        for (size_t i = 0; i < x.size(); ++i) EXPECT_NEAR(got[i], want[i], 2e-6F) << i;
      });
    }
}

}  // namespace
}  // namespace normlab::testing
