// Cross-entropy and its gradient in place, against plain loops in double and in float.
#include "normlab/kernels/cross_entropy.h"

#include <gtest/gtest.h>

#include <limits>

#include "kernels/parity.h"
#include "kernels/scalar/twins.h"

namespace normlab::testing {
namespace {

struct Case {
  size_t vocab = 65;
  float smoothing = 0.0F;
  double size = 3.0;
};

constexpr size_t kRows = 9;
constexpr float kScale = 0.125F;

std::vector<int64_t> random_targets(size_t vocab) {
  std::vector<int64_t> targets(kRows);
  for (size_t row = 0; row < kRows; ++row) targets[row] = static_cast<int64_t>(draw_below(7, row, vocab));
  targets[4] = -1;
  return targets;
}

template <class T>
struct Results {
  std::vector<T> loss, gradient;
};

template <class T>
Results<T> reference(const Case& c, const std::vector<float>& logits, const std::vector<int64_t>& targets) {
  Results<T> out{std::vector<T>(kRows), std::vector<T>(kRows * c.vocab)};
  const T smooth = T(c.smoothing) / T(c.vocab);
  for (size_t row = 0; row < kRows; ++row) {
    if (targets[row] < 0) continue;
    const float* z = &logits[row * c.vocab];
    const T top = *std::max_element(z, z + c.vocab);
    T sum = 0;
    for (size_t v = 0; v < c.vocab; ++v) sum += std::exp(z[v] - top);
    const T lse = top + std::log(sum);
    for (size_t v = 0; v < c.vocab; ++v) {
      const T wanted = smooth + (static_cast<int64_t>(v) == targets[row] ? T(1) - T(c.smoothing) : T(0));
      out.loss[row] -= wanted * (z[v] - lse);
      out.gradient[row * c.vocab + v] = T(kScale) * (std::exp(z[v] - lse) - wanted);
    }
  }
  return out;
}

using Kernel = decltype(&cross_entropy);

Results<float> run(Kernel kernel, const Case& c, const std::vector<float>& logits,
                   const std::vector<int64_t>& targets) {
  Results<float> out{std::vector<float>(kRows, 7.0F), logits};
  const CrossEntropySpec spec{.vocab = c.vocab, .smoothing = c.smoothing, .gradient_scale = kScale};
  kernel(spec, out.gradient.data(), targets.data(), out.loss.data(), {0, 3});
  kernel(spec, out.gradient.data(), targets.data(), out.loss.data(), {3, kRows});
  return out;
}

void expect_case(const Case& c) {
  SCOPED_TRACE("vocab " + std::to_string(c.vocab) + " smoothing " + std::to_string(c.smoothing));
  const auto logits = random_values(1, kRows * c.vocab, c.size);
  const auto targets = random_targets(c.vocab);
  const auto truth = reference<double>(c, logits, targets);
  const auto plain = reference<float>(c, logits, targets);
  const auto check = [&](Kernel kernel) {
    const auto got = run(kernel, c, logits, targets);
    expect_parity("loss", got.loss, truth.loss, plain.loss, 2.0);
    expect_parity("gradient", got.gradient, truth.gradient, plain.gradient, 3.0);
    EXPECT_EQ(got.loss[4], 0.0F) << "an ignored row";
    for (size_t v = 0; v < c.vocab; ++v) EXPECT_EQ(got.gradient[4 * c.vocab + v], 0.0F) << "an ignored row";
  };
  on_every_target([&] { check(cross_entropy); });
  check(scalar::cross_entropy);
}

TEST(CrossEntropy, ReferenceGradientIsDifferences) {
  const Case c{.vocab = 11, .smoothing = 0.2F};
  auto logits = random_values(1, kRows * c.vocab);
  const auto targets = random_targets(c.vocab);
  const std::vector<float> weights(kRows, kScale);
  const auto gradient = reference<double>(c, logits, targets).gradient;
  expect_gradient("logits", logits, gradient, [&] { return dot(reference<double>(c, logits, targets).loss, weights); });
}

TEST(CrossEntropy, EverySize) {
  for (const size_t vocab : kSizes)
    for (const float smoothing : {0.0F, 0.1F}) expect_case({.vocab = vocab, .smoothing = smoothing});
  expect_case({.vocab = 5000});
}

TEST(CrossEntropy, LargeAndTinyLogits) {
  for (const double size : {1e-10, 1e-3, 100.0, 1e6}) {
    expect_case({.size = size});
    expect_case({.smoothing = 0.1F, .size = size});
  }
}

TEST(CrossEntropy, WithoutGradientTheLogitsStay) {
  const Case c;
  const auto logits = random_values(1, kRows * c.vocab);
  const auto targets = random_targets(c.vocab);
  for (const Kernel kernel : {cross_entropy, scalar::cross_entropy}) {
    auto kept = logits;
    std::vector<float> loss(kRows);
    kernel({.vocab = c.vocab, .gradient = false}, kept.data(), targets.data(), loss.data(), {0, kRows});
    EXPECT_EQ(kept, logits);
    EXPECT_EQ(loss, run(kernel, c, logits, targets).loss);
  }
}

TEST(CrossEntropy, ANotANumberIsNotHidden) {
  for (const float bad : {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()})
    for (const size_t at : {0, 20, 64}) {
      auto logits = random_values(1, kRows * 65);
      logits[at] = bad;
      on_every_target([&] {
        EXPECT_FALSE(std::isfinite(run(cross_entropy, {}, logits, random_targets(65)).loss[0])) << bad << " at " << at;
      });
    }
}

}  // namespace
}  // namespace normlab::testing
