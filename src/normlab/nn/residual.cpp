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

LerpResidual::Factors LerpResidual::factors() const {
  // The authors' code of nGPT takes |alpha|.
  const Tensor stored = alpha_.used(), alpha = torch::maximum(stored, -stored);
  if (kind_ == Residual::lerp_unit) return {.stream = {}, .branch = alpha};
  if (kind_ == Residual::lerp) return {.stream = 1.0 - alpha, .branch = alpha};
  const Tensor nu = (alpha * alpha + (1.0 - alpha) * (1.0 - alpha)).rsqrt();
  return {.stream = (1.0 - alpha) * nu, .branch = alpha * nu};
}

Tensor LerpResidual::operator()(const Stream& stream) const {
  const Tensor branch = dropout(stream.branch, stream.dropout);
  const Factors of = factors();
  if (kind_ == Residual::lerp_unit)
    return lerp_norm(first_ ? lp_normalize(stream.x, 2.0, 1e-12) : stream.x, branch, of.branch, fused_);
  return weighted_sum({.h = stream.x, .a = of.stream, .b = branch, .c = of.branch}, fused_);
}

void LerpResidual::visit(const std::string& name, const ParameterVisitor& visitor) {
  if (alpha_.defined()) visitor(name, alpha_.stored, Role::scale);
}

}  // namespace normlab
