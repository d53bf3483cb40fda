// y = x W^T + b.
#pragma once

#include "nn/parameter.h"

namespace normlab {

struct Linear {
  torch::Tensor weight;  // [out, in]
  torch::Tensor bias;    // [out] or undefined

  Linear() = default;
  Linear(int64_t in, int64_t out, bool with_bias, torch::TensorOptions options);

  torch::Tensor operator()(const torch::Tensor& x) const { return torch::linear(x, weight, bias); }
  void visit(const std::string& name, Role role, const ParameterVisitor& visitor);
};

}  // namespace normlab
