// How a branch b joins the residual stream h by a lerp with a learnable step alpha >= 0.
//
//   lerp_unit   h <- unit(h + alpha o (unit(b) - h))          nGPT, arXiv 2410.01131
//   lerp_nu     h <- nu(alpha) o (h + alpha o (b - h))        anGPT, arXiv 2505.22014; nu of norm/nu.h
//   lerp        h <- h + alpha o (b - h)                      what nu(alpha) is for, left out
#pragma once

#include "normlab/config/model_config.h"
#include "normlab/nn/scaled_parameter.h"
#include "normlab/nn/stream_norm.h"

namespace normlab {

struct DecodeJoin;

class LerpResidual {
 public:
  LerpResidual() = default;
  // `first`: the stream comes straight from the embedding, whose rows have norm 1 only up to rounding.
  LerpResidual(const ModelConfig& config, const NormScheme& scheme, bool first, torch::TensorOptions options);

  bool defined() const { return alpha_.defined(); }
  torch::Tensor operator()(const Stream& stream) const;
  DecodeJoin decoded(int64_t d_model) const;
  void visit(const std::string& name, const ParameterVisitor& visitor);

 private:
  // What stream and branch are multiplied by, [c] or [1]; of lerp_unit alpha, for the branch.
  struct Factors {
    torch::Tensor stream, branch;
  };
  Factors factors() const;

  Residual kind_ = Residual::add;
  bool first_ = false, fused_ = false;
  ScaledParameter alpha_;  // [c] or [1]
};

}  // namespace normlab
