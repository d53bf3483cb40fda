// The norm of the residual stream: LayerNorm (Ba et al. 2016) or RMSNorm (Zhang & Sennrich 2019), or none.
#pragma once

#include "nn/parameter.h"
#include "norm/scheme.h"

namespace normlab {

struct StreamNorm {
  SublayerNorm kind = SublayerNorm::none;
  double eps = 1e-5;
  torch::Tensor weight;  // [d_model]; undefined for none
  torch::Tensor bias;    // [d_model] for LayerNorm with biases

  StreamNorm() = default;
  StreamNorm(const NormScheme& scheme, int64_t d_model, bool with_bias, torch::TensorOptions options);

  torch::Tensor operator()(const torch::Tensor& x) const;
  void visit(const std::string& name, const ParameterVisitor& visitor);
};

}  // namespace normlab
