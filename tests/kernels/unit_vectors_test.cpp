// The constraint on weights: rows and columns of norm 1, or at most 1, on every instruction set and by the scalar twin.
#include "normlab/kernels/unit_vectors.h"

#include <gtest/gtest.h>

#include "kernels/parity.h"
#include "kernels/scalar/twins.h"

namespace normlab::testing {
namespace {

struct Kernels {
  decltype(&unit_rows) rows, columns;
};
constexpr Kernels kVector{unit_rows, unit_columns}, kTwin{scalar::unit_rows, scalar::unit_columns};

// The definition in double.
std::vector<double> expected(const std::vector<float>& x, size_t rows, size_t cols, bool columns, bool ball) {
  std::vector<double> out(x.begin(), x.end());
  const size_t vectors = columns ? cols : rows, length = columns ? rows : cols;
  for (size_t v = 0; v < vectors; ++v) {
    const auto at = [&](size_t i) -> double& { return columns ? out[i * cols + v] : out[v * cols + i]; };
    double norm = 0.0;
    for (size_t i = 0; i < length; ++i) norm += at(i) * at(i);
    norm = std::sqrt(norm);
    if (ball) norm = std::max(norm, 1.0);
    for (size_t i = 0; i < length && norm > 0.0; ++i) at(i) /= norm;
  }
  return out;
}

void expect_case(size_t rows, size_t cols, double size, bool columns, bool ball) {
  SCOPED_TRACE(std::to_string(rows) + " x " + std::to_string(cols) + " of size " + std::to_string(size));
  const std::vector<float> start = random_values(1, rows * cols, size);
  const std::vector<double> truth = expected(start, rows, cols, columns, ball);
  const auto check = [&](const Kernels& kernels) {
    std::vector<float> x = start;
    const UnitVectors matrix{.data = x.data(), .rows = rows, .cols = cols, .ball = ball};
    const size_t vectors = columns ? cols : rows, step = columns ? kColumnStripe : 3;
    for (size_t begin = 0; begin < vectors; begin += step)
      (columns ? kernels.columns : kernels.rows)(matrix, {begin, std::min(begin + step, vectors)});
    for (size_t i = 0; i < x.size(); ++i) ASSERT_NEAR(x[i], truth[i], 4e-7 * (ball ? size + 1.0 : 1.0)) << i;
  };
  check(kTwin);
  on_every_target([&] { check(kVector); });
}

TEST(UnitVectors, RowsAndColumnsOfEverySize) {
  for (const bool ball : {false, true})
    for (const double size : {0.01, 1.0})
      for (const size_t n : kSizes) {
        expect_case(5, n, size, /*columns=*/false, ball);
        expect_case(5, n, size, /*columns=*/true, ball);
        expect_case(n, 7, size, /*columns=*/true, ball);
      }
}

TEST(UnitVectors, ZeroHugeAndTinyVectors) {
  on_every_target([] {
    std::vector<float> x = {0.0F, 0.0F, 3e30F, 4e30F, 3e-30F, 4e-30F};
    unit_rows({.data = x.data(), .rows = 3, .cols = 2}, {0, 3});
    EXPECT_EQ(x[0], 0.0F);
    for (const size_t row : {1U, 2U}) {
      EXPECT_NEAR(x[2 * row], 0.6, 1e-6);
      EXPECT_NEAR(x[2 * row + 1], 0.8, 1e-6);
    }
    std::vector<float> y = {0.0F, 3e30F, 3e-30F, 0.0F, 4e30F, 4e-30F};
    unit_columns({.data = y.data(), .rows = 2, .cols = 3}, {0, 3});
    EXPECT_EQ(y[3], 0.0F);
    for (const size_t column : {1U, 2U}) EXPECT_NEAR(y[column], 0.6, 1e-6);
  });
}

TEST(UnitVectors, TheBallLeavesShortVectorsAlone) {
  on_every_target([] {
    std::vector<float> x = {0.3F, 0.4F, 30.0F, 40.0F};
    unit_rows({.data = x.data(), .rows = 2, .cols = 2, .ball = true}, {0, 2});
    EXPECT_EQ(x[0], 0.3F);
    EXPECT_NEAR(x[2], 0.6, 1e-6);
  });
}

}  // namespace
}  // namespace normlab::testing
