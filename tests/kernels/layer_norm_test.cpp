// Layer and RMS norm with residual and dropout, against plain loops in double and in float.
#include "normlab/kernels/layer_norm.h"

#include <gtest/gtest.h>

#include "kernels/parity.h"
#include "kernels/scalar/twins.h"
#include "normlab/kernels/column_sums.h"

namespace normlab::testing {
namespace {

struct Case {
  size_t rows = 5, cols = 64;
  bool rms = false, affine = true, branch = true, residual = true;
  float dropout = 0.0F;
  double scale = 1.0, offset = 0.0;
};

struct Inputs {
  std::vector<float> x, branch, weight, bias, dy, residual;
  explicit Inputs(const Case& c) {
    const size_t n = c.rows * c.cols;
    x = random_values(1, n, c.scale);
    for (float& value : x) value += static_cast<float>(c.offset);
    branch = random_values(2, n, c.scale);
    weight = random_values(3, c.cols);
    bias = random_values(4, c.cols);
    dy = random_values(5, n);
    residual = random_values(6, n, 1.0 / c.scale);
  }
};

template <class T>
struct Results {
  std::vector<T> sum, y, rstd, ds, d_branch, d_weight, d_bias;
};

constexpr DropoutKey kKey{123, 456};

template <class T>
Results<T> reference(const Case& c, const Inputs& in) {
  const size_t size = c.rows * c.cols;
  Results<T> out{std::vector<T>(size), std::vector<T>(size),   std::vector<T>(c.rows), std::vector<T>(size),
                 std::vector<T>(size), std::vector<T>(c.cols), std::vector<T>(c.cols)};
  const T n = static_cast<T>(c.cols);
  for (size_t row = 0; row < c.rows; ++row) {
    const size_t at = row * c.cols;
    std::vector<T> keep(c.cols, T(1));
    T mean = 0, variance = 0, g_mean = 0, g_dot = 0;
    for (size_t i = 0; i < c.cols; ++i) {
      const uint32_t bits = keep_bits(row_key(kKey, static_cast<uint32_t>(row)), static_cast<uint32_t>(i));
      if (c.dropout > 0) keep[i] = bits >= drop_threshold(c.dropout) ? T(1) / (T(1) - T(c.dropout)) : T(0);
      // The sum is a float tensor: the norm and its gradient start from its rounded values.
      const float rounded = in.x[at + i] + (c.branch ? static_cast<float>(in.branch[at + i] * keep[i]) : 0.0F);
      out.sum[at + i] = rounded;
      if (!c.rms) mean += out.sum[at + i];
    }
    mean /= n;
    for (size_t i = 0; i < c.cols; ++i) variance += (out.sum[at + i] - mean) * (out.sum[at + i] - mean);
    const T rstd = T(1) / std::sqrt(variance / n + T(1e-5F));
    out.rstd[row] = rstd;
    const auto weight = [&](size_t i) { return c.affine ? T(in.weight[i]) : T(1); };
    const auto hat = [&](size_t i) { return (out.sum[at + i] - mean) * rstd; };
    for (size_t i = 0; i < c.cols; ++i) {
      out.y[at + i] = hat(i) * weight(i) + (c.affine ? T(in.bias[i]) : T(0));
      g_mean += c.rms ? T(0) : in.dy[at + i] * weight(i);
      g_dot += in.dy[at + i] * weight(i) * hat(i);
    }
    for (size_t i = 0; i < c.cols; ++i) {
      const T norm = rstd * (in.dy[at + i] * weight(i) - g_mean / n - hat(i) * g_dot / n);
      out.ds[at + i] = norm + (c.residual ? T(in.residual[at + i]) : T(0));
      out.d_branch[at + i] = out.ds[at + i] * keep[i];
      out.d_weight[i] += in.dy[at + i] * hat(i);
      out.d_bias[i] += T(in.dy[at + i]);
    }
  }
  return out;
}

struct Kernels {
  decltype(&norm_forward) forward;
  decltype(&norm_backward) backward;
};
constexpr Kernels kVector{norm_forward, norm_backward}, kTwin{scalar::norm_forward, scalar::norm_backward};

// Works on the ranges between `cuts`, as threads would.
Results<float> run(const Kernels& kernels, const Case& c, const Inputs& in, std::vector<size_t> cuts = {}) {
  const size_t size = c.rows * c.cols, blocks = row_blocks(c.rows);
  Results<float> out{in.x,
                     std::vector<float>(size),
                     std::vector<float>(c.rows),
                     in.residual,
                     std::vector<float>(size),
                     std::vector<float>(blocks * c.cols, 7.0F),
                     std::vector<float>(blocks * c.cols, 7.0F)};
  std::vector<float> mean(c.rows);
  const NormSpec spec{.cols = c.cols,
                      .rms = c.rms,
                      .weight = c.affine ? in.weight.data() : nullptr,
                      .bias = c.affine ? in.bias.data() : nullptr,
                      .dropout = c.dropout,
                      .dropout_key = kKey};
  const NormForward forward{.x = out.sum.data(),
                            .branch = c.branch ? in.branch.data() : nullptr,
                            .sum = c.branch ? out.sum.data() : nullptr,
                            .y = out.y.data(),
                            .mean = mean.data(),
                            .rstd = out.rstd.data()};
  const NormBackward backward{.dy = in.dy.data(),
                              .s = out.sum.data(),
                              .mean = mean.data(),
                              .rstd = out.rstd.data(),
                              .d_residual = c.residual ? out.ds.data() : nullptr,
                              .ds = out.ds.data(),
                              .d_branch = out.d_branch.data(),
                              .d_weight = out.d_weight.data(),
                              .d_bias = out.d_bias.data()};
  cuts.push_back(c.rows);
  for (size_t begin = 0, i = 0; i < cuts.size(); begin = cuts[i++]) {
    kernels.forward(spec, forward, {begin, cuts[i]});
    kernels.backward(spec, backward, {begin, cuts[i]});
  }
  for (auto* partial : {&out.d_weight, &out.d_bias}) {
    column_sums(partial->data(), c.cols, {0, blocks}, c.cols, partial->data());
    partial->resize(c.cols);
  }
  return out;
}

void expect_case(const Case& c) {
  SCOPED_TRACE("rows " + std::to_string(c.rows) + " cols " + std::to_string(c.cols) + " rms " + std::to_string(c.rms) +
               " affine " + std::to_string(c.affine) + " scale " + std::to_string(c.scale));
  const Inputs in(c);
  const auto truth = reference<double>(c, in);
  const auto plain = reference<float>(c, in);
  const auto check = [&](const Kernels& kernels) {
    const auto got = run(kernels, c, in);
    expect_parity("sum", got.sum, truth.sum, plain.sum, 2.0);
    expect_parity("y", got.y, truth.y, plain.y, 2.0);
    expect_parity("rstd", got.rstd, truth.rstd, plain.rstd, 2.0);
    expect_parity("ds", got.ds, truth.ds, plain.ds, 3.0);
    expect_parity("d_branch", got.d_branch, truth.d_branch, plain.d_branch, 3.0);
    expect_parity("d_weight", got.d_weight, truth.d_weight, plain.d_weight, 3.0);
    expect_parity("d_bias", got.d_bias, truth.d_bias, plain.d_bias, 3.0);
  };
  on_every_target([&] { check(kVector); });
  check(kTwin);
}

TEST(LayerNorm, ReferenceGradientsAreDifferences) {
  for (const bool rms : {false, true}) {
    const Case c{.rows = 3, .cols = 9, .rms = rms, .branch = false, .residual = false};
    Inputs in(c);
    const auto loss = [&] { return dot(reference<double>(c, in).y, in.dy); };
    const auto truth = reference<double>(c, in);
    expect_gradient("x", in.x, truth.ds, loss);
    expect_gradient("weight", in.weight, truth.d_weight, loss);
    expect_gradient("bias", in.bias, truth.d_bias, loss);
  }
}

TEST(LayerNorm, EverySize) {
  for (const size_t cols : kSizes)
    for (const bool rms : {false, true}) expect_case({.rows = rows_for(cols), .cols = cols, .rms = rms});
}

TEST(LayerNorm, EveryOption) {
  expect_case({.affine = false});
  expect_case({.branch = false});
  expect_case({.residual = false});
  expect_case({.cols = 33, .rms = true, .affine = false, .branch = false, .residual = false});
  expect_case({.rows = 20, .cols = 100, .dropout = 0.3F});
  expect_case({.rows = 150, .cols = 40});
}

TEST(LayerNorm, LargeTinyAndShiftedValues) {
  for (const double scale : {1e-20, 1e-3, 1e4, 1e15})
    for (const bool rms : {false, true}) expect_case({.cols = 127, .rms = rms, .scale = scale});
  expect_case({.cols = 384, .offset = 1000.0});
}

TEST(LayerNorm, SquaresThatOverflowStayFinite) {
  const Case c{.cols = 65, .branch = false, .scale = 1e30};
  const Inputs in(c);
  on_every_target([&] {
    const auto got = run(kVector, c, in), twin = run(kTwin, c, in);
    for (size_t i = 0; i < got.y.size(); ++i) ASSERT_NEAR(got.y[i], twin.y[i], 1e-5F);
    for (const float value : got.ds) ASSERT_TRUE(std::isfinite(value));
  });
}

TEST(LayerNorm, ConstantRowsGiveTheBias) {
  Case c{.cols = 31, .branch = false};
  Inputs in(c);
  std::fill(in.x.begin(), in.x.end(), 3.0F);
  const auto got = run(kVector, c, in);
  for (size_t i = 0; i < got.y.size(); ++i) EXPECT_FLOAT_EQ(got.y[i], in.bias[i % c.cols]);
}

TEST(LayerNorm, SplittingTheRowsChangesNoBit) {
  const Case c{.rows = 200, .cols = 48, .dropout = 0.1F};
  const Inputs in(c);
  const auto whole = run(kVector, c, in), split = run(kVector, c, in, {64, 128});
  EXPECT_EQ(whole.y, split.y);
  EXPECT_EQ(whole.ds, split.ds);
  EXPECT_EQ(whole.d_branch, split.d_branch);
  EXPECT_EQ(whole.d_weight, split.d_weight);
  EXPECT_EQ(whole.d_bias, split.d_bias);
}

}  // namespace
}  // namespace normlab::testing
