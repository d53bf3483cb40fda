// AdamW and the squared norm, against plain loops in double and in float.
#include "normlab/kernels/adamw.h"

#include <gtest/gtest.h>

#include "kernels/parity.h"
#include "kernels/scalar/twins.h"

namespace normlab::testing {
namespace {

struct State {
  std::vector<float> param, grad, m, v;
  explicit State(size_t n, double size = 1.0)
      : param(random_values(1, n)),
        grad(random_values(2, n, size)),
        m(random_values(3, n, size)),
        v(random_values(4, n, size)) {
    for (float& value : v) value *= value;
  }
  AdamWBuffers buffers() { return {param.data(), grad.data(), m.data(), v.data()}; }
};

// The formula of PyTorch's documentation, step by step.
template <class T>
struct Reference {
  std::vector<T> param, m, v;
  Reference(const AdamWSpec& spec, const State& s) : param(s.param.size()), m(param), v(param) {
    const T step_size = T(spec.lr / (1.0 - std::pow(spec.beta1, double(spec.step))));
    const T root = T(std::sqrt(1.0 - std::pow(spec.beta2, double(spec.step))));
    for (size_t i = 0; i < param.size(); ++i) {
      const T g = s.grad[i] * T(spec.clip);
      param[i] = s.param[i] - T(spec.lr * spec.weight_decay) * s.param[i];
      m[i] = T(spec.beta1) * s.m[i] + T(1.0 - spec.beta1) * g;
      v[i] = T(spec.beta2) * s.v[i] + T(1.0 - spec.beta2) * g * g;
      param[i] -= step_size * m[i] / (std::sqrt(v[i]) / root + T(spec.eps));
    }
  }
};

using Kernel = decltype(&adamw);

void expect_case(const AdamWSpec& spec, size_t n, double size = 1.0) {
  SCOPED_TRACE("n " + std::to_string(n) + " step " + std::to_string(spec.step) + " size " + std::to_string(size));
  const State start(n, size);
  const Reference<double> truth(spec, start);
  const Reference<float> plain(spec, start);
  const auto check = [&](Kernel kernel) {
    State state = start;
    kernel(spec, state.buffers(), {0, n / 2});
    kernel(spec, state.buffers(), {n / 2, n});
    expect_parity("param", state.param, truth.param, plain.param, 2.0);
    expect_parity("m", state.m, truth.m, plain.m, 2.0);
    expect_parity("v", state.v, truth.v, plain.v, 2.0);
    EXPECT_EQ(state.grad, start.grad);
  };
  on_every_target([&] { check(adamw); });
  check(scalar::adamw);
}

TEST(AdamW, EverySize) {
  for (const size_t n : kSizes) expect_case({.lr = 0.01, .weight_decay = 0.1, .step = 3}, n);
}

TEST(AdamW, EveryOption) {
  expect_case({.lr = 0.1, .beta1 = 0.8, .beta2 = 0.95, .eps = 1e-3, .weight_decay = 0.0, .step = 1}, 100);
  expect_case({.weight_decay = 0.1, .step = 100000, .clip = 0.03}, 100);
}

TEST(AdamW, LargeAndTinyGradients) {
  for (const double size : {1e-18, 1e-6, 1e15}) expect_case({.step = 2}, 127, size);
}

TEST(AdamW, ZeroGradientsOfAFreshStateOnlyDecay) {
  State state(33);
  for (auto* values : {&state.grad, &state.m, &state.v}) std::fill(values->begin(), values->end(), 0.0F);
  const auto before = state.param;
  adamw({.lr = 0.5, .weight_decay = 0.5}, state.buffers(), {0, 33});
  for (size_t i = 0; i < before.size(); ++i) EXPECT_FLOAT_EQ(state.param[i], 0.75F * before[i]);
}

TEST(SquaredNorm, IsTheSumInDouble) {
  for (const double size : {1e-25, 1.0, 1e25})
    for (const size_t n : {size_t{0}, size_t{1}, size_t{31}, 3 * kNormBlock + 77}) {
      const auto x = random_values(5, n, size);
      const auto check = [&](decltype(&squared_norm) kernel) {
        const size_t cut = n / 3;
        EXPECT_NEAR(kernel(x.data(), {0, cut}) + kernel(x.data(), {cut, n}), dot(x, x), 1e-13 * dot(x, x)) << n;
      };
      on_every_target([&] { check(squared_norm); });
      check(scalar::squared_norm);
    }
}

TEST(AddTo, AddsTheRangeOnly) {
  const auto x = random_values(6, 41), y = random_values(7, 41);
  const auto check = [&](decltype(&add_to) kernel) {
    auto sum = x;
    kernel(sum.data(), y.data(), {3, 38});
    for (size_t i = 0; i < x.size(); ++i) EXPECT_EQ(sum[i], i >= 3 && i < 38 ? x[i] + y[i] : x[i]) << i;
  };
  on_every_target([&] { check(add_to); });
  check(scalar::add_to);
}

}  // namespace
}  // namespace normlab::testing
