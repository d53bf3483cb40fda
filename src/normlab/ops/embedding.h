// Rows of a table chosen by index.
#pragma once

#include <torch/types.h>

namespace normlab {

torch::Tensor embedding(const torch::Tensor& table_vc, const torch::Tensor& index, bool fused);

}  // namespace normlab
