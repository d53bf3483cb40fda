#include "nn/linear.h"

namespace normlab {

Linear::Linear(int64_t in, int64_t out, bool with_bias, bool fused, torch::TensorOptions options)
    : weight(torch::zeros({out, in}, options)),
      bias(with_bias ? torch::zeros({out}, options) : torch::Tensor()),
      packed(fused ? std::make_shared<PackedWeight>() : nullptr) {}

void Linear::visit(const std::string& name, Role role, const ParameterVisitor& visitor) {
  visitor(name + ".weight", weight, role);
  if (bias.defined()) visitor(name + ".bias", bias, Role::bias);
}

}  // namespace normlab
