// Scalar twin of the row transforms of qk_rows.h, in double: one row at a time, the readable truth.
#pragma once

#include "normlab/kernels/qk_rows.h"

namespace normlab::scalar {

// What the backward pass needs of a row: dx = scale * (g - pull * w * (g . y)).
struct RowFactor {
  double scale = 1.0, pull = 0.0;
};

struct RowShape {
  ptrdiff_t position;  // row of the rotary table
  ptrdiff_t d;
};

// hat[d] = T(x[d]); y[d] (which may be hat) is the row as it leaves the norm.
RowFactor transform_row(const RowTransform& t, const RowAffine& affine, RowShape shape, const float* x, double* y,
                        double* hat);

// g[d] holds the gradient of hat and becomes that of x; what `sums` points at is added to.
void transform_row_backward(const RowTransform& t, const RowAffine& affine, RowShape shape, const double* y,
                            RowFactor factor, double* g, const RowGrads& sums);

void transform_rows(const RowTransform& t, const RowAffine& affine, ConstRows x, ptrdiff_t rows, ptrdiff_t d, Rows y);

}  // namespace normlab::scalar
