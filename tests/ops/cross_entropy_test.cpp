#include "normlab/ops/cross_entropy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fused_check.h"
#include "normlab/base/error.h"

namespace normlab {
namespace {

using torch::Tensor;

TEST(CrossEntropy, FusedIsAsExactAsComposite) {
  torch::manual_seed(3);
  for (const int64_t vocab : {1, 2, 65, 1000})
    expect_as_exact(
        [](const std::vector<Tensor>& in, bool fused) {
          return std::vector{cross_entropy(in[0].clone(), in[1], fused)};  // a copy: the op takes its input over
        },
        {3 * torch::randn({37, vocab}), torch::randint(vocab, {37}, torch::kInt64)});
}

TEST(CrossEntropy, LeavesTheLogitsAloneWithoutGradients) {
  const Tensor logits = torch::randn({4, 9});
  Tensor given = logits.clone();
  const Tensor targets = torch::tensor({0, 8, 3, 3}, torch::kInt64);
  const Tensor loss = cross_entropy(std::move(given), targets, /*fused=*/true);
  EXPECT_NEAR(loss.item<double>(), torch::cross_entropy_loss(logits, targets).item<double>(), 1e-6);
}

TEST(CrossEntropy, RefusesTargetsOutsideTheVocabulary) {
  for (const int64_t bad : {-1, 9}) {
    try {
      cross_entropy(torch::randn({2, 9}), torch::tensor({3, static_cast<int>(bad)}, torch::kInt64), /*fused=*/true);
      FAIL() << "target " << bad << " passed";
    } catch (const Error& error) {
      EXPECT_THAT(error.what(), testing::HasSubstr("expected 0 .. 8"));
    }
  }
}

}  // namespace
}  // namespace normlab
