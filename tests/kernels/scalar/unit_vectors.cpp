// Scalar twin of unit_vectors.cpp, in double.
#include <algorithm>
#include <cmath>

#include "kernels/scalar/twins.h"

namespace normlab::scalar {
namespace {

// `count` entries, `stride` floats apart.
void to_unit(float* x, size_t count, size_t stride, bool ball) {
  double squares = 0.0;
  for (size_t i = 0; i < count; ++i) squares += static_cast<double>(x[i * stride]) * x[i * stride];
  const double norm = ball ? std::max(1.0, std::sqrt(squares)) : std::sqrt(squares);
  if (norm == 0.0) return;
  for (size_t i = 0; i < count; ++i) x[i * stride] = static_cast<float>(x[i * stride] / norm);
}

}  // namespace

void unit_rows(const UnitVectors& matrix, RowRange rows) noexcept {
  for (size_t row = rows.begin; row < rows.end; ++row)
    to_unit(matrix.data + row * matrix.cols, matrix.cols, 1, matrix.ball);
}

void unit_columns(const UnitVectors& matrix, RowRange columns) noexcept {
  for (size_t column = columns.begin; column < columns.end; ++column)
    to_unit(matrix.data + column, matrix.rows, matrix.cols, matrix.ball);
}

}  // namespace normlab::scalar
