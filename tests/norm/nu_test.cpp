#include "normlab/norm/nu.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

namespace normlab {
namespace {

double silu(double x) { return x / (1.0 + std::exp(-x)); }
double gelu(double x) { return 0.5 * x * std::erfc(-x / std::sqrt(2.0)); }

TEST(Nu, OfMaps) {
  EXPECT_DOUBLE_EQ(nu_of_map(64, 256), 0.5);
  EXPECT_DOUBLE_EQ(nu_of_map(256, 64), 2.0);
}

// Values of an independent computation; the paper's own for SiLU at 0.5 is 3.74, by Monte Carlo.
TEST(Nu, OfActivationsByQuadrature) {
  EXPECT_NEAR(nu_of_activation(silu, 0.5), 3.7203, 5e-5);
  EXPECT_NEAR(nu_of_activation(silu, 1.0), 1.6765, 5e-5);
  EXPECT_NEAR(nu_of_activation(gelu, 1.0), 1.5335, 5e-5);
  EXPECT_NEAR(nu_of_activation(gelu, 0.5), 3.4605, 5e-5);
}

TEST(Nu, OfActivationsWithAClosedForm) {
  EXPECT_NEAR(nu_of_activation([](double x) { return x; }, 0.25), 4.0, 1e-12);
  EXPECT_NEAR(nu_of_activation([](double x) { return std::max(x, 0.0); }, 0.5, 100.0), std::sqrt(8.0 / 100.0), 1e-12);
}

}  // namespace
}  // namespace normlab
