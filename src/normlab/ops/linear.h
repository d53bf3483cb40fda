// y = x W^T + b with gradients, on the products of matmul.h.
#pragma once

#include <memory>

#include "normlab/ops/gradient_sink.h"
#include "normlab/ops/matmul.h"

namespace normlab {

// float32 on the CPU. `packed` may be out of date: then this call packs its own copy. With a `sink`, backward adds dW
// to the sum that the sink has of it.
torch::Tensor fused_linear(const torch::Tensor& x, const torch::Tensor& weight, const torch::Tensor& bias,
                           const std::shared_ptr<PackedWeight>& packed, GradientSink* sink = nullptr);

}  // namespace normlab
