// Rows of q or k on their way to q_hat or k_hat: normalisation over the head, and rotary positions before or after it.
//
//   lp     y = x / max(||x||_p, eps),  ||x||_p = M (sum_h (|x_h|/M)^p)^(1/p),  M = max|x|     p in (0, inf]
//   rms    y = x / sqrt(mean(x^2) + eps)                   then  gain * y
//   layer  y = (x - mean(x)) / sqrt(var(x) + eps)          then  gain * y + bias
//
// Lp: Lopez-Rubio et al. 2026, arXiv 2602.05006 (p = 2: Henry et al. 2020, arXiv 2010.04245); rotary positions:
// Su et al. 2021, arXiv 2104.09864. Gradient of lp, n = max(||x||_p, eps), w_h = sign(y_h) |y_h|^(p-1):
//
//   dx = (dy - w (dy . y)) / n        w = sign(x) at p = 1, sign(x_m) e_m with m the first argmax|x| at p = inf,
//                                     w_h = 0 where x_h = 0; the second term vanishes where eps clamps
//   dp = -sum_rows (dy . y) (1/p) sum_h |y_h|^p ln|y_h|
#pragma once

#include <cstddef>

#include "normlab/norm/attention_form.h"

namespace normlab {

struct RowTransform {
  QkNorm norm = QkNorm::none;
  float p = 2.0F;  // of lp only; infinity allowed
  float eps = 1e-12F;
  QkOrder order = QkOrder::before_rope;
  RopePairing pairing = RopePairing::interleaved;
  const float* cos = nullptr;  // [rows, d/2]; row 0 belongs to the first row of x. Null: no rotation; else d is even.
  const float* sin = nullptr;

  bool rotates_before_norm() const { return cos && order == QkOrder::after_rope; }
  bool rotates_after_norm() const { return cos && order == QkOrder::before_rope; }
};

// Learnable channel gains and biases of rms and layer, [d] each; null means ones or zeros.
struct RowAffine {
  const float* gain = nullptr;
  const float* bias = nullptr;
};

// Gradients of what is shared by the rows; written, not accumulated; null where not wanted.
struct RowGrads {
  float* gain = nullptr;  // [d]
  float* bias = nullptr;  // [d]
  double* p = nullptr;    // one value; 0 for anything but lp with finite p
};

struct Rows {
  float* data = nullptr;
  ptrdiff_t row_stride = 0;  // in floats; a row is contiguous
};
struct ConstRows {
  const float* data = nullptr;
  ptrdiff_t row_stride = 0;
};

// y[rows, d] = T(x[rows, d]), with the table of the transform starting at the first row; d <= 256. The bits of a row do
// not depend on the rows beside it.
void transform_rows(const RowTransform& transform, const RowAffine& affine, ConstRows x, ptrdiff_t rows, ptrdiff_t d,
                    Rows y) noexcept;

}  // namespace normlab
