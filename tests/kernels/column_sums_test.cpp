// Sums over rows in a fixed order.
#include "normlab/kernels/column_sums.h"

#include <gtest/gtest.h>

#include "kernels/parity.h"
#include "kernels/scalar/twins.h"

namespace normlab::testing {
namespace {

TEST(ColumnSums, AreTheSums) {
  for (const size_t cols : kSizes) {
    SCOPED_TRACE(cols);
    const size_t rows = 11, stride = cols + 3;
    const auto x = random_values(1, rows * stride);
    std::vector<double> truth(cols);
    std::vector<float> plain(cols);
    for (size_t row = 2; row < rows; ++row)
      for (size_t c = 0; c < cols; ++c) {
        truth[c] += x[row * stride + c];
        plain[c] += x[row * stride + c];
      }
    const auto check = [&](decltype(&column_sums) kernel) {
      std::vector<float> out(cols);
      kernel(x.data(), stride, {2, rows}, cols, out.data());
      expect_parity("sums", out, truth, plain, 2.0);
    };
    on_every_target([&] { check(column_sums); });
    check(scalar::column_sums);
  }
}

TEST(ColumnSums, MayReplaceTheFirstRow) {
  auto x = random_values(1, 4 * 40);
  std::vector<float> apart(40);
  column_sums(x.data(), 40, {0, 4}, 40, apart.data());
  column_sums(x.data(), 40, {0, 4}, 40, x.data());
  EXPECT_EQ(std::vector<float>(x.begin(), x.begin() + 40), apart);
}

}  // namespace
}  // namespace normlab::testing
