#include "nn/stream_norm.h"

namespace normlab {

StreamNorm::StreamNorm(const NormScheme& scheme, int64_t d_model, bool with_bias, torch::TensorOptions options)
    : kind(scheme.sublayer), eps(scheme.sublayer_eps) {
  if (kind != SublayerNorm::none) weight = torch::ones({d_model}, options);
  if (kind == SublayerNorm::layer && with_bias) bias = torch::zeros({d_model}, options);
}

torch::Tensor StreamNorm::operator()(const torch::Tensor& x) const {
  switch (kind) {
    case SublayerNorm::layer:
      return torch::layer_norm(x, weight.sizes(), weight, bias, eps);
    case SublayerNorm::rms:
      return torch::rms_norm(x, weight.sizes(), weight, eps);
    case SublayerNorm::none:
      break;
  }
  return x;
}

void StreamNorm::visit(const std::string& name, const ParameterVisitor& visitor) {
  if (weight.defined()) visitor(name + ".weight", weight, Role::norm_gain);
  if (bias.defined()) visitor(name + ".bias", bias, Role::norm_bias);
}

}  // namespace normlab
