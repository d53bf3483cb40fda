// GELU, ReLU, SwiGLU and GeGLU with bias and scale, against plain loops in double and in float.
#include "normlab/kernels/activation.h"

#include <gtest/gtest.h>

#include "kernels/parity.h"
#include "kernels/scalar/twins.h"
#include "normlab/kernels/column_sums.h"

namespace normlab::testing {
namespace {

struct Case {
  Activation kind = Activation::gelu;
  size_t rows = 5, hidden = 64;
  bool bias = true, scale = false;
  double size = 1.0;
  size_t cols() const { return is_gated(kind) ? 2 * hidden : hidden; }
};

struct Inputs {
  std::vector<float> x, dy, bias, scale;
  explicit Inputs(const Case& c)
      : x(random_values(1, c.rows * c.cols(), 2.0 * c.size)),
        dy(random_values(2, c.rows * c.hidden)),
        bias(random_values(3, c.cols(), c.size)),
        scale(random_values(4, c.cols())) {}
};

template <class T>
struct Results {
  std::vector<T> y, dx, d_bias, d_scale;
};

template <class T>
T cdf(T z) {
  return T(0.5) * (T(1) + std::erf(z * std::sqrt(T(0.5))));
}
template <class T>
T sigmoid(T z) {
  return T(1) / (T(1) + std::exp(-z));
}

// Its value and its slope.
template <class T>
std::pair<T, T> gelu_tanh(T z) {
  const T root = T(0.7978845608028654), t = root * (z + T(0.044715) * z * z * z), tanh = std::tanh(t);
  return {T(0.5) * z * (T(1) + tanh),
          T(0.5) * (T(1) + tanh) + T(0.5) * z * (T(1) - tanh * tanh) * root * (T(1) + T(3 * 0.044715) * z * z)};
}

template <class T>
Results<T> reference(const Case& c, const Inputs& in) {
  const size_t cols = c.cols();
  Results<T> out{std::vector<T>(c.rows * c.hidden), std::vector<T>(c.rows * cols), std::vector<T>(cols),
                 std::vector<T>(cols)};
  for (size_t row = 0; row < c.rows; ++row) {
    const auto z_at = [&](size_t i) {
      return in.x[row * cols + i] * (c.scale ? T(in.scale[i]) : T(1)) + (c.bias ? T(in.bias[i]) : T(0));
    };
    const auto put = [&](size_t i, T dz) {
      out.dx[row * cols + i] = dz * (c.scale ? T(in.scale[i]) : T(1));
      out.d_bias[i] += dz;
      out.d_scale[i] += dz * T(in.x[row * cols + i]);
    };
    for (size_t i = 0; i < c.hidden; ++i) {
      const T z = z_at(i), dy = T(in.dy[row * c.hidden + i]);
      T& y = out.y[row * c.hidden + i];
      if (c.kind == Activation::gelu) {
        y = z * cdf(z);
        put(i, dy * (cdf(z) + z * std::exp(-z * z / T(2)) * T(0.3989422804014327)));
      } else if (c.kind == Activation::gelu_tanh) {
        y = gelu_tanh(z).first;
        put(i, dy * gelu_tanh(z).second);
      } else if (c.kind == Activation::relu) {
        y = std::max(z, T(0));
        put(i, z > T(0) ? dy : T(0));
      } else if (c.kind == Activation::geglu) {
        const auto [value, slope] = gelu_tanh(z_at(c.hidden + i));
        y = z * value;
        put(i, dy * value);
        put(c.hidden + i, dy * z * slope);
      } else {
        const T gate = z_at(c.hidden + i), s = sigmoid(gate);
        y = z * gate * s;
        put(i, dy * gate * s);
        put(c.hidden + i, dy * z * s * (T(1) + gate * (T(1) - s)));
      }
    }
  }
  return out;
}

struct Kernels {
  decltype(&activation_forward) forward;
  decltype(&activation_backward) backward;
};
constexpr Kernels kVector{activation_forward, activation_backward};
constexpr Kernels kTwin{scalar::activation_forward, scalar::activation_backward};

Results<float> run(const Kernels& kernels, const Case& c, const Inputs& in, std::vector<size_t> cuts = {}) {
  const size_t cols = c.cols(), blocks = row_blocks(c.rows);
  Results<float> out{std::vector<float>(c.rows * c.hidden), in.x, std::vector<float>(blocks * cols, 7.0F),
                     std::vector<float>(blocks * cols, 7.0F)};
  const ActivationSpec spec{.kind = c.kind,
                            .cols = cols,
                            .bias = c.bias ? in.bias.data() : nullptr,
                            .scale = c.scale ? in.scale.data() : nullptr};
  const ActivationBackward backward{.x = out.dx.data(),
                                    .dy = in.dy.data(),
                                    .dx = out.dx.data(),
                                    .d_bias = out.d_bias.data(),
                                    .d_scale = out.d_scale.data()};
  cuts.push_back(c.rows);
  for (size_t begin = 0, i = 0; i < cuts.size(); begin = cuts[i++]) {
    kernels.forward(spec, in.x.data(), out.y.data(), {begin, cuts[i]});
    kernels.backward(spec, backward, {begin, cuts[i]});
  }
  for (auto* partial : {&out.d_bias, &out.d_scale}) {
    column_sums(partial->data(), cols, {0, blocks}, cols, partial->data());
    partial->resize(cols);
  }
  return out;
}

void expect_case(const Case& c) {
  SCOPED_TRACE("kind " + std::to_string(static_cast<int>(c.kind)) + " hidden " + std::to_string(c.hidden));
  const Inputs in(c);
  const auto truth = reference<double>(c, in);
  const auto plain = reference<float>(c, in);
  const auto check = [&](const Kernels& kernels) {
    const auto got = run(kernels, c, in);
    expect_parity("y", got.y, truth.y, plain.y, 2.0);
    expect_parity("dx", got.dx, truth.dx, plain.dx, 3.0);
    expect_parity("d_bias", got.d_bias, truth.d_bias, plain.d_bias, 3.0, largest_of(truth.dx));
    expect_parity("d_scale", got.d_scale, truth.d_scale, plain.d_scale, 3.0, largest_of(truth.dx) * largest_of(in.x));
  };
  on_every_target([&] { check(kVector); });
  check(kTwin);
}

constexpr Activation kKinds[] = {Activation::gelu, Activation::gelu_tanh, Activation::relu, Activation::swiglu,
                                 Activation::geglu};

TEST(Activation, ReferenceGradientsAreDifferences) {
  for (const auto kind : {Activation::gelu, Activation::gelu_tanh, Activation::swiglu, Activation::geglu}) {
    const Case c{.kind = kind, .rows = 3, .hidden = 5, .scale = true};
    Inputs in(c);
    const auto loss = [&] { return dot(reference<double>(c, in).y, in.dy); };
    const auto truth = reference<double>(c, in);
    expect_gradient("x", in.x, truth.dx, loss);
    expect_gradient("bias", in.bias, truth.d_bias, loss);
    expect_gradient("scale", in.scale, truth.d_scale, loss);
  }
}

TEST(Activation, EverySize) {
  for (const size_t hidden : kSizes)
    for (const auto kind : kKinds) expect_case({.kind = kind, .rows = rows_for(hidden), .hidden = hidden});
}

TEST(Activation, EveryOption) {
  for (const auto kind : kKinds)
    for (const bool bias : {false, true})
      for (const bool scale : {false, true})
        expect_case({.kind = kind, .rows = 130, .hidden = 40, .bias = bias, .scale = scale});
}

TEST(Activation, LargeAndTinyValues) {
  for (const auto kind : kKinds)
    for (const double size : {1e-20, 1e-3, 30.0, 1e15}) expect_case({.kind = kind, .hidden = 127, .size = size});
}

// Each value on its own: the tail of Phi keeps its digits where 1 + erf loses all of them.
TEST(Activation, GeluIsAccurateRelativeToEachValue) {
  std::vector<float> x, y(18001);
  for (int i = 0; i <= 18000; ++i) x.push_back(static_cast<float>(i - 9000) * 1e-3F);
  on_every_target([&] {
    activation_forward({.kind = Activation::gelu, .cols = x.size()}, x.data(), y.data(), {0, 1});
    double worst = 0.0, worst_tail = 0.0;
    for (size_t i = 0; i < x.size(); ++i) {
      const double z = x[i], truth = z * 0.5 * std::erfc(-z * std::sqrt(0.5));
      double& kept = z < -2.0 ? worst_tail : worst;
      if (truth != 0.0) kept = std::max(kept, std::abs(y[i] - truth) / std::abs(truth));
    }
    EXPECT_LT(worst, 4e-7);
    const int64_t target = hwy::SupportedTargets();
    const bool fused_multiply_add = target <= HWY_AVX2 || target == HWY_NEON;  // without it the square loses digits
    EXPECT_LT(worst_tail, fused_multiply_add ? 6e-7 : 1e-5);
  });
}

TEST(Activation, SplittingTheRowsChangesNoBit) {
  for (const auto kind : kKinds) {
    const Case c{.kind = kind, .rows = 150, .hidden = 33, .scale = true};
    const Inputs in(c);
    const auto whole = run(kVector, c, in), split = run(kVector, c, in, {64, 128});
    EXPECT_EQ(whole.y, split.y);
    EXPECT_EQ(whole.dx, split.dx);
    EXPECT_EQ(whole.d_bias, split.d_bias);
    EXPECT_EQ(whole.d_scale, split.d_scale);
  }
}

}  // namespace
}  // namespace normlab::testing
