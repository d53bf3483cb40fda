#include "normlab/ops/add_norm.h"

#include <gtest/gtest.h>

#include "fused_check.h"

namespace normlab {
namespace {

using torch::Tensor;

NormWeights weights_of(const std::vector<Tensor>& affine) {
  NormWeights weights;
  if (!affine.empty()) weights.weight = affine[0];
  if (affine.size() > 1) weights.bias = affine[1];
  return weights;
}

// Inputs: x, branch, then the norm's weight and bias, if any.
EitherForm add_then_norm(SublayerNorm kind, const Dropout& how = {}) {
  return [=](const std::vector<Tensor>& in, bool fused) {
    const NormedSum out =
        add_norm(in[0], in[1], how, {.fused = fused, .kind = kind}, weights_of({in.begin() + 2, in.end()}));
    return std::vector<Tensor>{out.sum, out.y};
  };
}

TEST(AddNorm, FusedIsAsExactAsComposite) {
  torch::manual_seed(1);
  for (const int64_t c : {33, 96, 384}) {  // kernels/layer_norm_test has every size
    const Tensor x = torch::randn({3, 25, c}), branch = torch::randn({3, 25, c});
    const Tensor weight = torch::randn({c}), bias = torch::randn({c});
    SCOPED_TRACE(c);
    expect_as_exact(add_then_norm(SublayerNorm::layer), {x, branch, weight, bias});
    expect_as_exact(add_then_norm(SublayerNorm::layer), {x, branch, weight});
    expect_as_exact(add_then_norm(SublayerNorm::rms), {x, branch, weight});
    expect_as_exact(add_then_norm(SublayerNorm::rms, {.rate = 0.3, .key = {5, 6}, .first_row = 40}),
                    {x, branch, weight});
  }
}

TEST(AddNorm, WithoutABranchTheStreamIsUntouched) {
  const Tensor x = torch::randn({2, 5, 16}), weight = torch::randn({16});
  const EitherForm op = [](const std::vector<Tensor>& in, bool fused) {
    const NormedSum out = add_norm(in[0], {}, {}, {.fused = fused, .kind = SublayerNorm::layer}, weights_of({in[1]}));
    EXPECT_TRUE(out.sum.is_same(in[0]));
    return std::vector<Tensor>{out.y};
  };
  expect_as_exact(op, {x, weight});
}

TEST(AddNorm, ReadsTensorsThatAreNotContiguous) {
  const Tensor x = torch::randn({2, 16, 5}).transpose(1, 2), branch = torch::randn({5, 2, 16}).transpose(0, 1);
  expect_as_exact(add_then_norm(SublayerNorm::layer), {x, branch, torch::randn({16}), torch::randn({16})});
}

}  // namespace
}  // namespace normlab
