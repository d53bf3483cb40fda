#include "normlab/nn/scaled_parameter.h"

#include <gtest/gtest.h>

#include <cmath>

namespace normlab {
namespace {

using torch::Tensor;

TEST(ScaledParameter, StartsAtItsInitialValueWhateverItsStoredSize) {
  for (const double stored : {1.0, 0.05, 7.0}) {
    const ScaledParameter parameter = scaled_parameter(3, {.init = 0.05, .stored_scale = stored}, torch::kFloat64);
    EXPECT_DOUBLE_EQ(parameter.stored[0].item<double>(), stored);
    EXPECT_NEAR(parameter.used()[2].item<double>(), 0.05, 1e-15);
  }
  EXPECT_FALSE(ScaledParameter{}.used().defined());
}

TEST(ScaledParameter, ExpIsClamped) {
  ScaledParameter parameter = exp_parameter(2, 10.0, 100.0, torch::kFloat64);
  EXPECT_NEAR(parameter.stored[0].item<double>(), std::log(10.0), 1e-15);
  EXPECT_NEAR(parameter.used()[0].item<double>(), 10.0, 1e-12);
  parameter.stored[1] = 50.0;
  parameter.stored.requires_grad_(true);
  const Tensor used = parameter.used();
  EXPECT_NEAR(used[1].item<double>(), 100.0, 1e-9);
  used.sum().backward();
  EXPECT_NEAR(parameter.stored.grad()[0].item<double>(), 10.0, 1e-9);
  EXPECT_EQ(parameter.stored.grad()[1].item<double>(), 0.0);
}

}  // namespace
}  // namespace normlab
