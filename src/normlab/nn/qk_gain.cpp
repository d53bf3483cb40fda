#include "normlab/nn/qk_gain.h"

namespace normlab {
namespace {

// Entries of a layer's own gain; none when it has none or the model holds it.
int64_t gain_size(GainSharing sharing, int64_t n_heads, int64_t d_head) {
  switch (sharing) {
    case GainSharing::layer:
      return 1;
    case GainSharing::head:
      return n_heads;
    case GainSharing::channel:
      return n_heads * d_head;
    case GainSharing::none:
    case GainSharing::model:
      break;
  }
  return 0;
}

ScaledParameter make(int64_t size, const ModelConfig& c, const NormScheme& scheme, torch::TensorOptions options) {
  if (size == 0) return {};
  const double init = initial_gain(scheme, {c.d_head, c.n_heads, c.seq_len});
  if (scheme.gain_form == GainForm::exp) return exp_parameter(size, init, scheme.gain_max, options);
  return scaled_parameter(size, {init, value_of(scheme.stored_scale, {c.d_head, c.d_model, init})}, options);
}

}  // namespace

ScaledParameter layer_gain(const ModelConfig& c, const NormScheme& scheme, torch::TensorOptions options) {
  return make(gain_size(scheme.gain, c.n_heads, c.d_head), c, scheme, options);
}

ScaledParameter model_gain(const ModelConfig& c, const NormScheme& scheme, torch::TensorOptions options) {
  return make(scheme.gain == GainSharing::model ? 1 : 0, c, scheme, options);
}

}  // namespace normlab
