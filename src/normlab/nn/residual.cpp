#include "normlab/nn/residual.h"

#include "normlab/ops/lerp_norm.h"
#include "normlab/ops/lp_norm.h"
#include "normlab/ops/weighted_sum.h"

namespace normlab {

using torch::Tensor;

LerpResidual::LerpResidual(const ModelConfig& config, const NormScheme& scheme, bool first,
                           torch::TensorOptions options)
    : kind_(scheme.residual), first_(first), fused_(config.kernels == Kernels::fused) {
  if (kind_ == Residual::add) return;
  const double init = initial_alpha(config, scheme);
  alpha_ = scaled_parameter(alpha_size(config, scheme), {init, stored_start(config, scheme, init)}, options);
}

Tensor LerpResidual::operator()(const Stream& stream) const {
  // The authors' code of nGPT takes |alpha|.
  const Tensor stored = alpha_.used(), alpha = torch::maximum(stored, -stored);
  const Tensor branch = dropout(stream.branch, stream.dropout);
  switch (kind_) {
    case Residual::lerp_unit:
      return lerp_norm(first_ ? lp_normalize(stream.x, 2.0, 1e-12) : stream.x, branch, alpha, fused_);
    case Residual::lerp_nu: {
      const Tensor nu = (alpha * alpha + (1.0 - alpha) * (1.0 - alpha)).rsqrt();
      return weighted_sum({.h = stream.x, .a = (1.0 - alpha) * nu, .b = branch, .c = alpha * nu}, fused_);
    }
    case Residual::lerp:
      return weighted_sum({.h = stream.x, .a = 1.0 - alpha, .b = branch, .c = alpha}, fused_);
    case Residual::add:
      break;
  }
  return stream.x + branch;
}

void LerpResidual::visit(const std::string& name, const ParameterVisitor& visitor) {
  if (alpha_.defined()) visitor(name, alpha_.stored, Role::scale);
}

}  // namespace normlab
