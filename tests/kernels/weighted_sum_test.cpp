// The weighted sum of stream and branch, against its definition in double.
#include "normlab/kernels/weighted_sum.h"

#include <gtest/gtest.h>

#include "kernels/parity.h"
#include "kernels/scalar/twins.h"
#include "normlab/kernels/column_sums.h"

namespace normlab::testing {
namespace {

void expect_case(size_t rows, size_t cols) {
  SCOPED_TRACE(std::to_string(rows) + " x " + std::to_string(cols));
  const auto h = random_values(1, rows * cols), b = random_values(2, rows * cols), dy = random_values(3, rows * cols);
  const auto a = random_values(4, cols), c = random_values(5, cols);
  std::vector<double> da(cols), dc(cols);
  for (size_t i = 0; i < rows * cols; ++i) {
    da[i % cols] += static_cast<double>(dy[i]) * h[i];
    dc[i % cols] += static_cast<double>(dy[i]) * b[i];
  }
  const auto check = [&](auto forward, auto backward) {
    std::vector<float> y(rows * cols), dh(rows * cols), db(rows * cols);
    std::vector<float> sum_a(row_blocks(rows) * cols, 7.0F), sum_c(sum_a);
    const WeightedSum args{.h = h.data(), .b = b.data(), .a = a.data(), .c = c.data()};
    const WeightedSumGrads grads{
        .dy = dy.data(), .dh = dh.data(), .db = db.data(), .da = sum_a.data(), .dc = sum_c.data()};
    const size_t middle = rows > kRowsPerBlock ? kRowsPerBlock : rows;
    for (const RowRange range : {RowRange{0, middle}, RowRange{middle, rows}}) {
      forward(args, y.data(), cols, range);
      backward(args, grads, cols, range);
    }
    column_sums(sum_a.data(), cols, {0, row_blocks(rows)}, cols, sum_a.data());
    column_sums(sum_c.data(), cols, {0, row_blocks(rows)}, cols, sum_c.data());
    for (size_t i = 0; i < rows * cols; ++i) {
      ASSERT_NEAR(y[i], double{a[i % cols]} * h[i] + double{c[i % cols]} * b[i], 2e-6) << i;
      ASSERT_NEAR(dh[i], double{a[i % cols]} * dy[i], 1e-6) << i;
      ASSERT_NEAR(db[i], double{c[i % cols]} * dy[i], 1e-6) << i;
    }
    for (size_t i = 0; i < cols; ++i) {
      ASSERT_NEAR(sum_a[i], da[i], 1e-5 * static_cast<double>(rows)) << i;
      ASSERT_NEAR(sum_c[i], dc[i], 1e-5 * static_cast<double>(rows)) << i;
    }
  };
  check(scalar::weighted_sum_forward, scalar::weighted_sum_backward);
  on_every_target([&] { check(weighted_sum_forward, weighted_sum_backward); });
}

TEST(WeightedSum, EverySize) {
  for (const size_t cols : kSizes)
    for (const size_t rows : {1U, 5U, 130U}) expect_case(rows, cols);
}

}  // namespace
}  // namespace normlab::testing
