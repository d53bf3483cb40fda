#include "normlab/nn/mlp.h"

#include <cmath>

#include "normlab/nn/mlp_factors.h"
#include "normlab/ops/activation.h"

namespace normlab {
namespace {

// A factor of `up` commutes with all that follows in a gated activation, so that one pass applies every constant.
torch::Tensor nu_of_hidden(const MlpFactors& nu, const ModelConfig& c, torch::TensorOptions options) {
  const torch::Tensor gate = torch::full({c.d_ff}, nu.in * nu.argument, options);
  if (!is_gated(c.activation)) return gate;
  return torch::cat({torch::full({c.d_ff}, nu.in * nu.activation * nu.out, options), gate});
}

}  // namespace

Mlp::Mlp(const ModelConfig& config, const NormScheme& scheme, torch::TensorOptions options)
    : activation_(config.activation),
      fused_(config.kernels == Kernels::fused),
      in_(config.d_model, (is_gated(activation_) ? 2 : 1) * config.d_ff, config.bias, fused_, options),
      out_(config.d_ff, config.d_model, config.bias, fused_, options) {
  if (is_gated(activation_)) in_.maps = {config.d_ff, config.d_ff};
  if (scheme.sigma_reparam) in_.add_sigma(), out_.add_sigma();
  if (scheme.map_scale == MapScale::s_uv) {
    s_uv_ = scaled_parameter(in_.weight.size(0), {}, options);
    scale_root_ = std::sqrt(double(config.d_model));
  }
  if (scheme.map_scale == MapScale::nu) {
    const MlpFactors nu = mlp_factors(config);
    nu_ = nu_of_hidden(nu, config, options);
    if (!is_gated(activation_)) output_scale_ = nu.activation * nu.out;
  }
}

torch::Tensor Mlp::scale() const { return s_uv_.defined() ? s_uv_.used() * scale_root_ : nu_; }

torch::Tensor Mlp::operator()(const torch::Tensor& x_btc, const Dropout& hidden, GradientSink* sink) const {
  const torch::Tensor y = out_(dropout(activate(in_(x_btc, sink), activation_, fused_, scale()), hidden), sink);
  return output_scale_ == 1.0 ? y : y * output_scale_;
}

void Mlp::visit(const std::string& name, const ParameterVisitor& visitor) {
  in_.visit(name + ".in", Role::weight, visitor);
  out_.visit(name + ".out", Role::residual_weight, visitor);
  if (s_uv_.defined()) visitor(name + ".s_uv", s_uv_.stored, Role::scale);
}

void Mlp::visit_linears(const LinearVisitor& visitor) const {
  visitor(in_);
  visitor(out_);
}

}  // namespace normlab
