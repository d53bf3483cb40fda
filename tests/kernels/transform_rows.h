// The row transforms of the attention kernels on their own.
#pragma once

#include "normlab/kernels/qk_rows.h"

namespace normlab::testing {

// y[rows, d] = T(x[rows, d]). d <= 256.
void transform_rows(const RowTransform& transform, const RowAffine& affine, ConstRows x, ptrdiff_t rows, ptrdiff_t d,
                    Rows y);

}  // namespace normlab::testing
