// The floats of tensors that may be absent, for fused ops.
#pragma once

#include <torch/types.h>

#include <optional>

namespace normlab {

inline const float* data(const torch::Tensor& tensor) {
  return tensor.defined() ? tensor.const_data_ptr<float>() : nullptr;
}
inline float* mutable_data(const torch::Tensor& tensor) {
  return tensor.defined() ? tensor.mutable_data_ptr<float>() : nullptr;
}

// Function::apply() knows absent tensors only as empty options.
inline std::optional<torch::Tensor> given(const torch::Tensor& tensor) {
  return tensor.defined() ? std::optional(tensor) : std::nullopt;
}

}  // namespace normlab
