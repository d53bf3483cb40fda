// The feed-forward sublayer: out(drop(activation(scale o in(x)))).
#pragma once

#include "normlab/config/model_config.h"
#include "normlab/nn/linear.h"
#include "normlab/nn/scaled_parameter.h"
#include "normlab/ops/dropout.h"

namespace normlab {

struct DecodeMlp;

class Mlp {
 public:
  Mlp() = default;
  Mlp(const ModelConfig& config, const NormScheme& scheme, torch::TensorOptions options);

  torch::Tensor operator()(const torch::Tensor& x_btc, const Dropout& hidden = {}, GradientSink* sink = nullptr) const;
  DecodeMlp decoded() const;
  void visit(const std::string& name, const ParameterVisitor& visitor);
  void visit_linears(const LinearVisitor& visitor) const;

 private:
  torch::Tensor scale() const;  // of the hidden channels; undefined: none

  Activation activation_ = Activation::gelu;
  bool fused_ = false;
  Linear in_;  // where gated: rows up, then gate
  Linear out_;
  ScaledParameter s_uv_;       // [rows of in_], of MapScale::s_uv
  torch::Tensor nu_;           // the same place, constant, of MapScale::nu
  double scale_root_ = 1.0;    // sqrt(d_model), beside s_uv
  double output_scale_ = 1.0;  // what nu leaves to do after out_
};

}  // namespace normlab
