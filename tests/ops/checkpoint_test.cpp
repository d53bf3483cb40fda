#include "normlab/ops/checkpoint.h"

#include <gtest/gtest.h>
#include <torch/autograd.h>

#include "normlab/base/error.h"
#include "normlab/ops/precision.h"

namespace normlab {
namespace {

using torch::Tensor;

TEST(Checkpoint, ComputesAgainInBackwardAndOnlyThen) {
  torch::manual_seed(1);
  const Tensor x = torch::randn({3, 4}).requires_grad_(true), y = torch::randn({3, 4}).requires_grad_(true);
  const Tensor fixed = torch::randn({3, 4}), weight = torch::randn({4, 4}).requires_grad_(true);
  const auto of = [&](const std::vector<Tensor>& in) {
    return std::vector<Tensor>{torch::matmul(in[0] * in[2], weight).sin(), in[1] * in[0]};
  };
  const auto gradients = [&](const std::vector<Tensor>& out) {
    for (const Tensor* leaf : {&x, &y, &weight}) leaf->mutable_grad().reset();
    (out[0].sum() + (out[1] * out[1]).sum()).backward();
    return std::vector<Tensor>{x.grad().clone(), y.grad().clone(), weight.grad().clone()};
  };
  const auto expected = gradients(of({x, y, fixed}));
  std::vector<bool> runs;
  const auto out = checkpoint({x, y, fixed}, [&](const std::vector<Tensor>& in, bool again) {
    runs.push_back(again);
    EXPECT_EQ(torch::GradMode::is_enabled(), again);
    return of(in);
  });
  EXPECT_EQ(runs, std::vector<bool>({false}));
  const auto got = gradients(out);
  EXPECT_EQ(runs, std::vector<bool>({false, true}));
  for (size_t i = 0; i < expected.size(); ++i) EXPECT_TRUE(torch::equal(got[i], expected[i])) << i;
}

TEST(Checkpoint, AnOutputThatIsNotUsedHasNoGradient) {
  const Tensor x = torch::ones({2}).requires_grad_(true);
  const auto out = checkpoint({x}, [](const std::vector<Tensor>& in, bool) {
    return std::vector<Tensor>{in[0] * 3.0, in[0] * 5.0};
  });
  out[0].sum().backward();
  EXPECT_TRUE(torch::equal(x.grad(), torch::full({2}, 3.0F)));
}

TEST(Checkpoint, RefusesSecondDerivatives) {
  const Tensor x = torch::ones({2}).requires_grad_(true);
  const auto out =
      checkpoint({x}, [](const std::vector<Tensor>& in, bool) { return std::vector<Tensor>{in[0] * 3.0}; });
  EXPECT_THROW(torch::autograd::grad({out[0].sum()}, {x}, {}, true, /*create_graph=*/true), Error);
}

TEST(Checkpoint, ComputesAgainInTheSameType) {
  const Tensor x = torch::randn({2, 8}).requires_grad_(true), weight = torch::randn({8, 8});
  std::vector<torch::ScalarType> types;
  std::vector<Tensor> out;
  {
    const Autocast on(torch::kCPU, true);
    out = checkpoint({x}, [&](const std::vector<Tensor>& in, bool) {
      const Tensor y = torch::matmul(in[0], weight);
      types.push_back(y.scalar_type());
      return std::vector<Tensor>{y};
    });
  }
  out[0].sum().backward();
  EXPECT_EQ(types, std::vector<torch::ScalarType>({torch::kBFloat16, torch::kBFloat16}));
  EXPECT_EQ(x.grad().scalar_type(), torch::kFloat32);
}

}  // namespace
}  // namespace normlab
