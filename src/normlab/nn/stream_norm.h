// The residual stream and its norm: LayerNorm (Ba et al. 2016), RMSNorm (Zhang & Sennrich 2019), ScaleNorm (Nguyen &
// Salazar 2019), DyT (Zhu et al. 2025), or none.
#pragma once

#include "normlab/nn/parameter.h"
#include "normlab/ops/add_norm.h"

namespace normlab {

struct DecodeNorm;

// The stream with the branch that is yet to be added to it: the add and the norm that follows are one pass.
struct Stream {
  torch::Tensor x;
  torch::Tensor branch = {};  // undefined: nothing to add
  Dropout dropout = {};       // of the branch
};

class StreamNorm {
 public:
  StreamNorm() = default;
  StreamNorm(const NormScheme& scheme, int64_t d_model, bool with_bias, bool fused, torch::TensorOptions options);

  // Adds the branch to the stream and gives the norm of the sum.
  torch::Tensor operator()(Stream& stream) const;
  DecodeNorm decoded() const;
  void visit(const std::string& name, const ParameterVisitor& visitor);
  void multiply_by(double factor) { form_.factor = factor; }

 private:
  NormForm form_;
  NormWeights weights_;
};

}  // namespace normlab
