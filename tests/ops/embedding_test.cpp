#include "normlab/ops/embedding.h"

#include <gtest/gtest.h>

#include "fused_check.h"

namespace normlab {
namespace {

using torch::Tensor;

TEST(Embedding, FusedIsAsExactAsComposite) {
  torch::manual_seed(4);
  for (const int64_t rows : {1, 65, 9000})
    expect_as_exact(
        [](const std::vector<Tensor>& in, bool fused) { return std::vector{embedding(in[0], in[1], fused)}; },
        {torch::randn({rows, 24}), torch::randint(rows, {3, 50}, torch::kInt64)});
}

TEST(Embedding, AddsToASumOfTheSink) {
  const Tensor table = torch::randn({7, 3}).requires_grad_(true), index = torch::tensor({1, 1, 6}, torch::kInt64);
  GradientSink sink;
  embedding(table, index, /*fused=*/true, &sink).sum().backward();  // the sink has no sum yet
  const Tensor once = table.grad().clone();
  sink.collect({table});
  int returned = 0;
  table.register_hook([&](const Tensor& gradient) { returned += gradient.defined() ? 1 : 0; });
  embedding(table, index, /*fused=*/true, &sink).sum().backward();
  EXPECT_EQ(returned, 0);
  EXPECT_TRUE(torch::equal(table.grad(), 2 * once));
  EXPECT_EQ(once[1][0].item<double>(), 2.0);
}

}  // namespace
}  // namespace normlab
