// The lerp-normalise residual of nGPT, against plain loops in double and in float.
#include "normlab/kernels/lerp_norm.h"

#include <gtest/gtest.h>

#include "kernels/parity.h"
#include "kernels/scalar/twins.h"
#include "normlab/kernels/column_sums.h"

namespace normlab::testing {
namespace {

struct Case {
  size_t rows = 5, cols = 64;
  double size = 1.0;
};

struct Inputs {
  std::vector<float> h, branch, alpha, d_out;
  explicit Inputs(const Case& c)
      : h(random_values(1, c.rows * c.cols, 1.0 / std::sqrt(static_cast<double>(c.cols)))),
        branch(random_values(2, c.rows * c.cols, c.size)),
        alpha(random_values(3, c.cols, 0.3)),
        d_out(random_values(4, c.rows * c.cols)) {}
};

template <class T>
struct Results {
  std::vector<T> out, dh, d_branch, d_alpha;
};

template <class T>
T length(const T* x, size_t n) {
  T sum = 0;
  for (size_t i = 0; i < n; ++i) sum += x[i] * x[i];
  return std::sqrt(sum);
}

template <class T>
Results<T> reference(const Case& c, const Inputs& in) {
  const size_t n = c.cols;
  Results<T> r{std::vector<T>(c.rows * n), std::vector<T>(c.rows * n), std::vector<T>(c.rows * n), std::vector<T>(n)};
  for (size_t at = 0; at < c.rows * n; at += n) {
    std::vector<T> b_hat(in.branch.begin() + static_cast<ptrdiff_t>(at),
                         in.branch.begin() + static_cast<ptrdiff_t>(at + n));
    const T b_length = length(b_hat.data(), n);
    for (T& value : b_hat) value /= b_length;
    T* z = &r.out[at];
    for (size_t i = 0; i < n; ++i) z[i] = in.h[at + i] + in.alpha[i] * (b_hat[i] - in.h[at + i]);
    const T z_length = length(z, n);
    T dot_out = 0, dot_b = 0;
    for (size_t i = 0; i < n; ++i) z[i] /= z_length;
    for (size_t i = 0; i < n; ++i) dot_out += in.d_out[at + i] * z[i];
    const auto dz = [&](size_t i) { return (in.d_out[at + i] - z[i] * dot_out) / z_length; };
    for (size_t i = 0; i < n; ++i) dot_b += in.alpha[i] * dz(i) * b_hat[i];
    for (size_t i = 0; i < n; ++i) {
      r.dh[at + i] = (T(1) - in.alpha[i]) * dz(i);
      r.d_branch[at + i] = (in.alpha[i] * dz(i) - b_hat[i] * dot_b) / b_length;
      r.d_alpha[i] += dz(i) * (b_hat[i] - in.h[at + i]);
    }
  }
  return r;
}

struct Kernels {
  decltype(&lerp_norm_forward) forward;
  decltype(&lerp_norm_backward) backward;
};
constexpr Kernels kVector{lerp_norm_forward, lerp_norm_backward};
constexpr Kernels kTwin{scalar::lerp_norm_forward, scalar::lerp_norm_backward};

Results<float> run(const Kernels& kernels, const Case& c, const Inputs& in, std::vector<size_t> cuts = {}) {
  const size_t size = c.rows * c.cols, blocks = row_blocks(c.rows);
  Results<float> r{std::vector<float>(size), in.d_out, std::vector<float>(size),
                   std::vector<float>(blocks * c.cols, 7.0F)};
  std::vector<float> b_scale(c.rows), z_scale(c.rows);
  cuts.push_back(c.rows);
  for (size_t begin = 0, i = 0; i < cuts.size(); begin = cuts[i++]) {
    kernels.forward({.h = in.h.data(),
                     .branch = in.branch.data(),
                     .alpha = in.alpha.data(),
                     .out = r.out.data(),
                     .b_scale = b_scale.data(),
                     .z_scale = z_scale.data()},
                    c.cols, {begin, cuts[i]});
    kernels.backward({.h = in.h.data(),
                      .branch = in.branch.data(),
                      .alpha = in.alpha.data(),
                      .out = r.out.data(),
                      .b_scale = b_scale.data(),
                      .z_scale = z_scale.data(),
                      .d_out = r.dh.data(),
                      .dh = r.dh.data(),
                      .d_branch = r.d_branch.data(),
                      .d_alpha = r.d_alpha.data()},
                     c.cols, {begin, cuts[i]});
  }
  column_sums(r.d_alpha.data(), c.cols, {0, blocks}, c.cols, r.d_alpha.data());
  r.d_alpha.resize(c.cols);
  return r;
}

void expect_case(const Case& c) {
  SCOPED_TRACE("rows " + std::to_string(c.rows) + " cols " + std::to_string(c.cols) + " size " +
               std::to_string(c.size));
  const Inputs in(c);
  const auto truth = reference<double>(c, in);
  const auto plain = reference<float>(c, in);
  const auto check = [&](const Kernels& kernels) {
    const auto got = run(kernels, c, in);
    expect_parity("out", got.out, truth.out, plain.out, 2.0);
    expect_parity("dh", got.dh, truth.dh, plain.dh, 3.0);
    expect_parity("d_branch", got.d_branch, truth.d_branch, plain.d_branch, 3.0);
    expect_parity("d_alpha", got.d_alpha, truth.d_alpha, plain.d_alpha, 3.0);
  };
  on_every_target([&] { check(kVector); });
  check(kTwin);
}

TEST(LerpNorm, ReferenceGradientsAreDifferences) {
  const Case c{.rows = 3, .cols = 7};
  Inputs in(c);
  const auto loss = [&] { return dot(reference<double>(c, in).out, in.d_out); };
  const auto truth = reference<double>(c, in);
  expect_gradient("h", in.h, truth.dh, loss);
  expect_gradient("branch", in.branch, truth.d_branch, loss);
  expect_gradient("alpha", in.alpha, truth.d_alpha, loss);
}

TEST(LerpNorm, EverySize) {
  for (const size_t cols : kSizes)
    if (cols > 1) expect_case({.rows = rows_for(cols), .cols = cols});
  expect_case({.rows = 130, .cols = 48});
}

TEST(LerpNorm, OneChannelIsASign) {
  const Case c{.cols = 1};
  const Inputs in(c);
  for (const Kernels& kernels : {kVector, kTwin}) {
    const auto got = run(kernels, c, in);
    for (const float value : got.out) EXPECT_NEAR(std::abs(value), 1.0F, 1e-6F);
    for (const float value : got.dh) EXPECT_NEAR(value, 0.0F, 1e-4F);
  }
}

TEST(LerpNorm, LargeAndTinyBranches) {
  for (const double size : {1e-12, 1e-3, 1e15}) expect_case({.cols = 127, .size = size});
}

TEST(LerpNorm, LengthsBeyondAFloatStayUnit) {
  for (const double size : {1e-30, 1e30}) {
    const Case c{.cols = 65, .size = size};
    const Inputs in(c);
    on_every_target([&] {
      const auto got = run(kVector, c, in), twin = run(kTwin, c, in);
      for (size_t i = 0; i < got.out.size(); ++i) ASSERT_NEAR(got.out[i], twin.out[i], 1e-6F);
      for (const float value : got.d_branch) ASSERT_TRUE(std::isfinite(value));
    });
  }
}

TEST(LerpNorm, ZeroRowsStayFinite) {
  const Case c{.rows = 3, .cols = 33};
  Inputs in(c);
  std::fill_n(in.branch.begin(), c.cols, 0.0F);
  std::fill_n(in.h.begin(), 2 * c.cols, 0.0F);
  for (const Kernels& kernels : {kVector, kTwin}) {
    const auto got = run(kernels, c, in);
    for (size_t i = 0; i < c.cols; ++i) EXPECT_EQ(got.out[i], 0.0F);
    for (const auto* values : {&got.out, &got.dh, &got.d_branch, &got.d_alpha})
      for (const float value : *values) ASSERT_TRUE(std::isfinite(value));
  }
}

TEST(LerpNorm, SplittingTheRowsChangesNoBit) {
  const Case c{.rows = 150, .cols = 40};
  const Inputs in(c);
  const auto whole = run(kVector, c, in), split = run(kVector, c, in, {64, 128});
  EXPECT_EQ(whole.out, split.out);
  EXPECT_EQ(whole.dh, split.dh);
  EXPECT_EQ(whole.d_branch, split.d_branch);
  EXPECT_EQ(whole.d_alpha, split.d_alpha);
}

}  // namespace
}  // namespace normlab::testing
