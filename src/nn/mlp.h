// The feed-forward sublayer: out(drop(activation(in(x)))).
#pragma once

#include "nn/linear.h"
#include "nn/model_config.h"
#include "ops/dropout.h"

namespace normlab {

class Mlp {
 public:
  Mlp() = default;
  Mlp(const ModelConfig& config, torch::TensorOptions options);

  torch::Tensor operator()(const torch::Tensor& x_btc, const Dropout& hidden = {}) const;
  void visit(const std::string& name, const ParameterVisitor& visitor);
  void visit_linears(const LinearVisitor& visitor) const;

 private:
  Activation activation_ = Activation::gelu;
  bool fused_ = false;
  Linear in_;  // SwiGLU: rows up, then gate
  Linear out_;
};

}  // namespace normlab
