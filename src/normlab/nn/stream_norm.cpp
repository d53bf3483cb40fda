#include "normlab/nn/stream_norm.h"

#include <cmath>

namespace normlab {

StreamNorm::StreamNorm(const NormScheme& scheme, int64_t d_model, bool with_bias, bool fused,
                       torch::TensorOptions options)
    : form_{.fused = fused, .kind = scheme.sublayer, .eps = scheme.sublayer_eps} {
  const SublayerNorm kind = form_.kind;
  if (kind == SublayerNorm::scale)
    form_.weight = torch::full({1}, std::sqrt(static_cast<double>(d_model)), options);
  else if (kind != SublayerNorm::none)
    form_.weight = torch::ones({d_model}, options);
  if (kind == SublayerNorm::dyt) form_.slope = torch::full({1}, 0.5, options);
  if (kind == SublayerNorm::dyt || (kind == SublayerNorm::layer && with_bias))
    form_.bias = torch::zeros({d_model}, options);
}

torch::Tensor StreamNorm::operator()(Stream& stream) const {
  NormedSum out = add_norm(stream.x, stream.branch, stream.dropout, form_);
  stream = {.x = out.sum};
  return out.y;
}

void StreamNorm::visit(const std::string& name, const ParameterVisitor& visitor) {
  if (form_.weight.defined()) visitor(name + ".weight", form_.weight, Role::norm_gain);
  if (form_.bias.defined()) visitor(name + ".bias", form_.bias, Role::norm_bias);
  if (form_.slope.defined()) visitor(name + ".slope", form_.slope, Role::scale);
}

}  // namespace normlab
