// y = x W^T + b.
#pragma once

#include <functional>
#include <memory>

#include "nn/parameter.h"
#include "ops/linear.h"

namespace normlab {

struct Linear {
  torch::Tensor weight;                  // [out, in]
  torch::Tensor bias;                    // [out] or undefined
  std::shared_ptr<PackedWeight> packed;  // shared with all copies; null: PyTorch's own product

  Linear() = default;
  Linear(int64_t in, int64_t out, bool with_bias, bool fused, torch::TensorOptions options);

  torch::Tensor operator()(const torch::Tensor& x) const {
    return packed ? fused_linear(x, weight, bias, packed) : torch::linear(x, weight, bias);
  }
  void visit(const std::string& name, Role role, const ParameterVisitor& visitor);
};

using LinearVisitor = std::function<void(const Linear&)>;

}  // namespace normlab
