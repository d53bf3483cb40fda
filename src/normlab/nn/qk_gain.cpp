#include "normlab/nn/qk_gain.h"

#include "normlab/config/parameters.h"

namespace normlab {
namespace {

ScaledParameter make(int64_t size, const ModelConfig& c, const NormScheme& scheme, torch::TensorOptions options) {
  if (size == 0) return {};
  const double init = initial_gain(c, scheme);
  if (scheme.gain_form == GainForm::exp) return exp_parameter(size, init, scheme.gain_max, options);
  return scaled_parameter(size, {init, stored_start(c, scheme, init)}, options);
}

}  // namespace

ScaledParameter layer_gain(const ModelConfig& c, const NormScheme& scheme, torch::TensorOptions options) {
  return make(gain_size(c, scheme), c, scheme, options);
}

ScaledParameter model_gain(const ModelConfig& c, const NormScheme& scheme, torch::TensorOptions options) {
  return make(scheme.gain == GainSharing::model ? 1 : 0, c, scheme, options);
}

}  // namespace normlab
