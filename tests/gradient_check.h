// Gradients against central differences in double, for a random projection of the output.
#pragma once

#include <gtest/gtest.h>
#include <torch/autograd.h>
#include <torch/types.h>

#include <functional>
#include <vector>

namespace normlab {

using TensorFunction = std::function<torch::Tensor(const std::vector<torch::Tensor>&)>;

// Every entry of every input; inputs must be double and stay clear of kinks by more than the step.
inline void expect_gradients(const TensorFunction& f, std::vector<torch::Tensor> inputs, double tolerance = 1e-6) {
  torch::manual_seed(11);
  for (auto& input : inputs) input = input.detach().clone().requires_grad_(true);
  const torch::Tensor weight = torch::randn_like(f(inputs).detach());
  const auto value = [&] { return (f(inputs) * weight).sum(); };
  const auto gradients = torch::autograd::grad({value()}, inputs, {}, {}, false, /*allow_unused=*/true);

  torch::NoGradGuard no_grad;
  constexpr double h = 1e-6;
  for (size_t i = 0; i < inputs.size(); ++i) {
    ASSERT_TRUE(gradients[i].defined()) << "input " << i << " got no gradient";
    double* entry = inputs[i].data_ptr<double>();
    const torch::Tensor analytic = gradients[i].contiguous();
    const double scale = 1.0 + analytic.abs().max().item<double>();
    for (int64_t j = 0; j < inputs[i].numel(); ++j) {
      const double kept = entry[j];
      entry[j] = kept + h;
      const double above = value().item<double>();
      entry[j] = kept - h;
      const double below = value().item<double>();
      entry[j] = kept;
      ASSERT_NEAR(analytic.data_ptr<double>()[j], (above - below) / (2 * h), tolerance * scale)
          << "input " << i << " entry " << j;
    }
  }
}

}  // namespace normlab
