// Rows of a table chosen by index.
#pragma once

#include "normlab/ops/gradient_sink.h"

namespace normlab {

// With a `sink`, the fused backward adds the gradient of the table to the sum that the sink has of it.
torch::Tensor embedding(const torch::Tensor& table_vc, const torch::Tensor& index, bool fused,
                        GradientSink* sink = nullptr);

}  // namespace normlab
