#include "nn/mlp.h"

namespace normlab {
namespace {

torch::Tensor activate(const torch::Tensor& x, Activation activation) {
  switch (activation) {
    case Activation::gelu:
      return torch::gelu(x);
    case Activation::relu:
      return torch::relu(x);
    case Activation::swiglu:
      break;
  }
  const auto halves = x.chunk(2, -1);
  return halves[0] * torch::silu(halves[1]);
}

}  // namespace

Mlp::Mlp(const ModelConfig& config, torch::TensorOptions options)
    : activation_(config.activation),
      in_(config.d_model, (activation_ == Activation::swiglu ? 2 : 1) * config.d_ff, config.bias, options),
      out_(config.d_ff, config.d_model, config.bias, options) {}

torch::Tensor Mlp::operator()(const torch::Tensor& x_btc) const { return out_(activate(in_(x_btc), activation_)); }

void Mlp::visit(const std::string& name, const ParameterVisitor& visitor) {
  in_.visit(name + ".in", Role::weight, visitor);
  out_.visit(name + ".out", Role::residual_weight, visitor);
}

}  // namespace normlab
