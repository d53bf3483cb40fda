// y = x W^T + b, or with sigma-Reparam y = (gamma / sigma(W)) x W^T + b (Zhai et al. 2023, arXiv 2303.06296).
#pragma once

#include <functional>
#include <memory>

#include "normlab/nn/parameter.h"
#include "normlab/ops/linear.h"

namespace normlab {

struct DecodeLinear;

struct Linear {
  torch::Tensor weight;                  // [out, in]
  std::vector<int64_t> maps;             // rows of each map stacked in the weight: one, or q, k and v
  torch::Tensor bias;                    // [out] or undefined
  std::shared_ptr<PackedWeight> packed;  // shared with all copies; null: PyTorch's own product
  torch::Tensor gamma;                   // [1] of sigma-Reparam, or undefined
  torch::Tensor u, v;                    // [out], [in]: singular vectors of W, which carry no gradient

  Linear() = default;
  Linear(int64_t in, int64_t out, bool with_bias, bool fused, torch::TensorOptions options);

  torch::Tensor operator()(const torch::Tensor& x, GradientSink* sink = nullptr) const {
    if (!gamma.defined()) return product(x, bias, sink);
    const torch::Tensor y = product(x, {}, sink) * (gamma / sigma());
    return bias.defined() ? y + bias : y;
  }
  DecodeLinear decoded() const;        // nn/decode_layer.h, as are those of the other modules
  void add_sigma();                    // makes this map one with sigma-Reparam
  torch::Tensor sigma() const;         // u^T W v
  void power_iterations(int n) const;  // of u and v, in place
  void visit(const std::string& name, Role role, const ParameterVisitor& visitor);

 private:
  torch::Tensor product(const torch::Tensor& x, const torch::Tensor& b, GradientSink* sink) const {
    return packed ? fused_linear(x, weight, b, packed, sink) : torch::linear(x, weight, b);
  }
};

using LinearVisitor = std::function<void(const Linear&)>;

}  // namespace normlab
