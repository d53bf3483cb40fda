// Queries or keys of single tokens on their way into the product, by the kernels: norm, channel gains, rotation, gain.
#pragma once

#include "normlab/kernels/qk_rows.h"
#include "normlab/ops/attention.h"

namespace normlab {

// All heads of a token. Holds its tensors, which are prepared once.
class DecodeHeads {
 public:
  struct Learned {
    torch::Tensor p, gain;  // undefined where there is none
    QkAffineTensors affine;
  };

  DecodeHeads() = default;
  DecodeHeads(const AttentionForm& form, const RopeTable* rope, const Learned& learned, int64_t heads, int64_t d);

  // out [heads, d] of x [heads, d], a token at `position`; `out` may not be `x`.
  void operator()(const float* x, int64_t position, float* out) const;

 private:
  void transform(int64_t head, int64_t count, const RowTransform& rows, const float* x, float* out) const;

  RowTransform rows_;
  Learned learned_;
  torch::Tensor cos_, sin_;
  int64_t heads_ = 0, d_ = 0;
  bool alike_ = true;  // all heads go through the same, so that one call does them
};

}  // namespace normlab
