#include "normlab/nn/stream_norm.h"

#include <cmath>

namespace normlab {

StreamNorm::StreamNorm(const NormScheme& scheme, int64_t d_model, bool with_bias, bool fused,
                       torch::TensorOptions options)
    : form_{.fused = fused, .kind = scheme.sublayer, .eps = scheme.sublayer_eps} {
  const SublayerNorm kind = form_.kind;
  if (kind == SublayerNorm::scale)
    weights_.weight = torch::full({1}, std::sqrt(static_cast<double>(d_model)), options);
  else if (kind != SublayerNorm::none)
    weights_.weight = torch::ones({d_model}, options);
  if (kind == SublayerNorm::dyt) weights_.slope = torch::full({1}, 0.5, options);
  if (kind == SublayerNorm::dyt || (kind == SublayerNorm::layer && with_bias))
    weights_.bias = torch::zeros({d_model}, options);
}

torch::Tensor StreamNorm::operator()(Stream& stream) const {
  NormedSum out = add_norm(stream.x, stream.branch, stream.dropout, form_, weights_);
  stream = {.x = out.sum};
  return out.y;
}

void StreamNorm::visit(const std::string& name, const ParameterVisitor& visitor) {
  if (weights_.weight.defined()) visitor(name + ".weight", weights_.weight, Role::norm_gain);
  if (weights_.bias.defined()) visitor(name + ".bias", weights_.bias, Role::norm_bias);
  if (weights_.slope.defined()) visitor(name + ".slope", weights_.slope, Role::scale);
}

}  // namespace normlab
