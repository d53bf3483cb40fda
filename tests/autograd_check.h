// Gradients that every caller of autograd gets: backward, torch::autograd::grad, a graph used twice.
#pragma once

#include <gtest/gtest.h>
#include <torch/autograd.h>
#include <torch/types.h>

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "normlab/base/error.h"

namespace normlab {

// `loss` makes a new graph each time; its bits must not depend on how often it is called.
inline void expect_gradients_for_every_caller(const std::vector<std::pair<std::string, torch::Tensor>>& parameters,
                                              const std::function<torch::Tensor()>& loss) {
  using torch::Tensor;
  std::vector<Tensor> leaves, expected;
  for (const auto& [name, leaf] : parameters) leaves.push_back(leaf);
  const auto forget = [&] {
    for (Tensor& leaf : leaves) leaf.mutable_grad().reset();
  };
  const auto compare = [&](const char* what, const std::function<Tensor(size_t)>& got, double factor = 1.0) {
    for (size_t i = 0; i < leaves.size(); ++i)
      EXPECT_TRUE(got(i).defined() && torch::equal(got(i), expected[i] * factor))
          << what << ": " << parameters[i].first;
  };
  forget();
  loss().backward();
  for (const Tensor& leaf : leaves) expected.push_back(leaf.grad().clone());
  const auto kept = [&](size_t i) { return leaves[i].grad(); };

  // With gradients of an earlier pass there, and with none.
  for (const bool earlier : {true, false}) {
    if (!earlier) forget();
    const Tensor value = loss();
    const auto once = torch::autograd::grad({value}, leaves, {}, /*retain_graph=*/true),
               twice = torch::autograd::grad({value}, leaves, {}, /*retain_graph=*/false);
    compare("grad", [&](size_t i) { return once[i]; });
    compare("grad of a retained graph", [&](size_t i) { return twice[i]; });
    if (earlier) {
      compare("kept", kept);
      continue;
    }
    for (size_t i = 0; i < leaves.size(); ++i) EXPECT_FALSE(leaves[i].grad().defined()) << parameters[i].first;
  }

  const Tensor value = loss();
  value.backward({}, /*retain_graph=*/true);
  value.backward();
  compare("two backward passes", kept, 2.0);
  forget();
  EXPECT_THROW(torch::autograd::grad({loss()}, leaves, {}, {}, /*create_graph=*/true), Error);
}

}  // namespace normlab
