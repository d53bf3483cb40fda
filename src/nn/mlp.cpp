#include "nn/mlp.h"

#include "ops/activation.h"

namespace normlab {

Mlp::Mlp(const ModelConfig& config, torch::TensorOptions options)
    : activation_(config.activation),
      fused_(config.kernels == Kernels::fused),
      in_(config.d_model, (activation_ == Activation::swiglu ? 2 : 1) * config.d_ff, config.bias, fused_, options),
      out_(config.d_ff, config.d_model, config.bias, fused_, options) {}

torch::Tensor Mlp::operator()(const torch::Tensor& x_btc, const Dropout& hidden) const {
  return out_(dropout(activate(in_(x_btc), activation_, fused_), hidden));
}

void Mlp::visit(const std::string& name, const ParameterVisitor& visitor) {
  in_.visit(name + ".in", Role::weight, visitor);
  out_.visit(name + ".out", Role::residual_weight, visitor);
}

void Mlp::visit_linears(const LinearVisitor& visitor) const {
  visitor(in_);
  visitor(out_);
}

}  // namespace normlab
