#include "normlab/nn/scaled_parameter.h"

#include <cmath>

namespace normlab {

torch::Tensor ScaledParameter::used() const {
  if (!stored.defined()) return {};
  if (form == GainForm::exp) return (std::isfinite(max) ? stored.clamp_max(std::log(max)) : stored).exp();
  return ratio == 1.0 ? stored : stored * ratio;
}

ScaledParameter scaled_parameter(int64_t size, ScaledInit values, torch::TensorOptions options) {
  return {.stored = torch::full({size}, values.stored_scale, options), .ratio = values.init / values.stored_scale};
}

ScaledParameter exp_parameter(int64_t size, double init, double max, torch::TensorOptions options) {
  return {.stored = torch::full({size}, std::log(init), options), .form = GainForm::exp, .max = max};
}

}  // namespace normlab
