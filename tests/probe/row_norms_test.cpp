#include "normlab/probe/row_norms.h"

#include <gtest/gtest.h>

namespace normlab {
namespace {

using torch::Tensor;

TEST(RowNorms, AreThoseOfTorch) {
  torch::manual_seed(1);
  for (const int64_t d : {1, 7, 16, 33, 64, 130}) {
    Tensor x = torch::randn({2, 5, 6, d});
    x[1][2][3].zero_();
    const Tensor exact = x.to(torch::kFloat64), norms = exact.norm(2, -1);
    const HeadSums sums = head_sums(x, 4);
    ASSERT_EQ(sums.norms.size(), 4U);
    for (int64_t h = 0; h < 4; ++h) {
      const Tensor peaks = exact.abs().amax(-1) / norms.clamp_min(1e-300);
      EXPECT_NEAR(sums.norms[static_cast<size_t>(h)], norms.select(2, h).sum().item<double>(), 1e-5 * d);
      EXPECT_NEAR(sums.peaks[static_cast<size_t>(h)], peaks.select(2, h).sum().item<double>(), 1e-5);
    }
    const auto parts = squared_norms(x, {1, 4, 6});
    for (const auto& [i, first, last] : {std::tuple<size_t, int64_t, int64_t>{0, 0, 1}, {1, 1, 4}, {2, 4, 6}}) {
      const double want = exact.slice(2, first, last).square().sum().item<double>();
      EXPECT_NEAR(parts[i], want, 1e-5 * want);
    }
    EXPECT_NEAR(squared_norm(x), exact.square().sum().item<double>(), 1e-5 * squared_norm(x));
    EXPECT_NEAR(squared_norm(x.transpose(0, 1)), squared_norm(x), 1e-5 * squared_norm(x));
    EXPECT_NEAR(sum_of_row_norms(exact), norms.sum().item<double>(), 1e-5 * d * 60);
  }
}

}  // namespace
}  // namespace normlab
