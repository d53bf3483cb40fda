// A fused op against its composite form: as exact as float32 allows, in values and in every gradient.
#pragma once

#include <gtest/gtest.h>
#include <torch/autograd.h>
#include <torch/types.h>

#include <functional>
#include <vector>

#include "autograd_check.h"

namespace normlab {

// Outputs of an op on `inputs`, by our kernels or by PyTorch's.
using EitherForm = std::function<std::vector<torch::Tensor>(const std::vector<torch::Tensor>& inputs, bool fused)>;

inline std::vector<torch::Tensor> outputs_and_gradients(const EitherForm& op, const std::vector<torch::Tensor>& given,
                                                        bool fused, torch::ScalarType type) {
  std::vector<torch::Tensor> inputs, results;
  for (const auto& tensor : given)
    inputs.push_back(tensor.is_floating_point() ? tensor.detach().to(type, false, /*copy=*/true).requires_grad_(true)
                                                : tensor);
  torch::manual_seed(17);
  torch::Tensor loss = torch::zeros({}, type);
  for (const auto& output : op(inputs, fused)) {
    results.push_back(output.detach().clone());
    loss = loss + (output * torch::randn(output.sizes()).to(type)).sum();
  }
  loss.backward();
  for (const auto& input : inputs)
    if (input.is_floating_point()) {
      EXPECT_TRUE(input.grad().defined());
      results.push_back(input.grad().clone());
    }
  return results;
}

// The fused form as a part of any graph: its gradients are those that backward gives, whoever asks for them.
inline void expect_gradients_of_fused(const EitherForm& op, const std::vector<torch::Tensor>& given) {
  std::vector<torch::Tensor> inputs;
  std::vector<std::pair<std::string, torch::Tensor>> leaves;
  for (const auto& tensor : given) {
    inputs.push_back(tensor.is_floating_point() ? tensor.detach().clone().requires_grad_(true) : tensor);
    if (tensor.is_floating_point()) leaves.emplace_back("input " + std::to_string(inputs.size()), inputs.back());
  }
  expect_gradients_for_every_caller(leaves, [&] {
    torch::manual_seed(17);
    torch::Tensor loss = torch::zeros({});
    for (const auto& output : op(inputs, /*fused=*/true)) loss = loss + (output * torch::randn(output.sizes())).sum();
    return loss;
  });
}

// Error against double at most 3 x that of PyTorch's float path, or one rounding of the largest value.
inline void expect_as_exact(const EitherForm& op, const std::vector<torch::Tensor>& inputs) {
  expect_gradients_of_fused(op, inputs);
  const auto truth = outputs_and_gradients(op, inputs, false, torch::kFloat64);
  const auto plain = outputs_and_gradients(op, inputs, false, torch::kFloat32);
  const auto got = outputs_and_gradients(op, inputs, true, torch::kFloat32);
  ASSERT_EQ(got.size(), truth.size());
  for (size_t i = 0; i < truth.size(); ++i) {
    const auto error = [&](const torch::Tensor& x) {
      return (x.to(torch::kFloat64) - truth[i]).abs().max().item<double>();
    };
    const double rounding = 0x1p-22 * truth[i].abs().max().item<double>();
    EXPECT_LE(error(got[i]), std::max(3.0 * error(plain[i]), rounding)) << "result " << i;
  }
}

}  // namespace normlab
