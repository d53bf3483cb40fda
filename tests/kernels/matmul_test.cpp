// Matrix products against a plain loop in double and in float.
#include "normlab/kernels/matmul.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <memory>

#include "kernels/parity.h"
#include "kernels/scalar/twins.h"

namespace normlab::testing {
namespace {

struct Case {
  size_t rows = 5, depth = 64, cols = 64;
  bool a_transposed = false, b_transposed = false, add = false;
};

struct Inputs {
  std::vector<float> a, b, c;
  MatrixView left, right;

  explicit Inputs(const Case& s)
      : a(random_values(1, s.rows * s.depth)),
        b(random_values(2, s.depth * s.cols)),
        c(random_values(3, s.rows * s.cols)),
        left(view(a, s.rows, s.depth, s.a_transposed)),
        right(view(b, s.depth, s.cols, s.b_transposed)) {}

  static MatrixView view(const std::vector<float>& values, size_t rows, size_t cols, bool transposed) {
    return transposed ? MatrixView{values.data(), cols, rows, rows, 1}.transposed()
                      : MatrixView{values.data(), rows, cols, cols, 1};
  }
};

template <class T>
std::vector<T> reference(const Case& s, const Inputs& in) {
  std::vector<T> c(s.rows * s.cols);
  const auto at = [](const MatrixView& m, size_t i, size_t j) {
    return static_cast<T>(m.data[i * m.row_stride + j * m.col_stride]);
  };
  for (size_t i = 0; i < s.rows; ++i)
    for (size_t j = 0; j < s.cols; ++j) {
      T sum = 0;
      for (size_t k = 0; k < s.depth; ++k) sum += at(in.left, i, k) * at(in.right, k, j);
      c[i * s.cols + j] = sum + (s.add ? static_cast<T>(in.c[i * s.cols + j]) : T(0));
    }
  return c;
}

struct FreeAligned {
  void operator()(float* data) const { std::free(data); }
};

std::vector<float> packed_product(const Case& s, const Inputs& in, const std::vector<size_t>& cuts = {}) {
  const size_t bytes = (packed_floats(s.depth, s.cols) * sizeof(float) / 64 + 1) * 64;
  const std::unique_ptr<float, FreeAligned> packed(static_cast<float*>(std::aligned_alloc(64, bytes)));
  pack_matrix(in.right, packed.get());
  std::vector<float> c = in.c;
  size_t begin = 0;
  const auto rows_until = [&](size_t end) {
    MatrixView rows = in.left;
    rows.data += begin * rows.row_stride;
    rows.rows = end - begin;
    matmul_packed(rows, packed.get(), s.cols, s.add, c.data() + begin * s.cols);
    begin = end;
  };
  for (const size_t cut : cuts) rows_until(cut);
  rows_until(s.rows);
  return c;
}

void expect_case(const Case& s) {
  SCOPED_TRACE(std::to_string(s.rows) + " x " + std::to_string(s.depth) + " x " + std::to_string(s.cols) +
               (s.a_transposed ? " a^T" : "") + (s.b_transposed ? " b^T" : "") + (s.add ? " add" : ""));
  const Inputs in(s);
  const auto truth = reference<double>(s, in);
  const auto plain = reference<float>(s, in);
  const double term = largest_of(in.a) * largest_of(in.b);
  const auto check = [&](const char* what, const std::vector<float>& got) {
    expect_parity(what, got, truth, plain, 2.0, term);
  };
  on_every_target([&] {
    if (!s.a_transposed) return check("packed", packed_product(s, in));
    std::vector<float> c = in.c;
    matmul_transposed(in.left.transposed(), in.right, s.add, c.data());
    check("transposed", c);
  });
  std::vector<float> c = in.c;
  scalar::matmul(in.left, in.right, s.add, c.data());
  check("twin", c);
}

TEST(Matmul, EverySize) {
  for (const size_t size : kSizes) {
    expect_case({.rows = size, .depth = 33, .cols = 65});
    expect_case({.rows = 13, .depth = size, .cols = 40});
    expect_case({.rows = 7, .depth = 31, .cols = size});
    expect_case({.rows = size, .depth = 33, .cols = 65, .a_transposed = true});
    expect_case({.rows = 13, .depth = size, .cols = 40, .a_transposed = true});
    expect_case({.rows = 7, .depth = 31, .cols = size, .a_transposed = true});
  }
}

TEST(Matmul, EveryLayout) {
  for (const bool add : {false, true}) {
    expect_case({.rows = 20, .depth = 70, .cols = 90, .add = add});
    expect_case({.rows = 20, .depth = 70, .cols = 90, .b_transposed = true, .add = add});
    expect_case({.rows = 20, .depth = 70, .cols = 90, .a_transposed = true, .add = add});
  }
}

TEST(Matmul, BlocksOfDepthAndWidth) {
  expect_case({.rows = 1, .depth = 800, .cols = 1000});
  expect_case({.rows = 1, .depth = 400, .cols = 390, .add = true});
  expect_case({.rows = 9, .depth = 800, .cols = 1000});
  expect_case({.rows = 9, .depth = 1000, .cols = 800, .b_transposed = true, .add = true});
  expect_case({.rows = 1000, .depth = 500, .cols = 400, .a_transposed = true, .add = true});
}

TEST(Matmul, SplittingTheRowsChangesNoBit) {
  const Case s{.rows = 41, .depth = 500, .cols = 377};
  const Inputs in(s);
  on_every_target([&] {
    const auto whole = packed_product(s, in);
    EXPECT_EQ(whole, packed_product(s, in, {6, 12, 36}));
    EXPECT_EQ(whole, packed_product(s, in, {1, 20, 40}));
  });
}

TEST(Matmul, NothingToDo) {
  float c = 3.0F;
  matmul_packed({nullptr, 0, 4, 4, 1}, nullptr, 5, /*add=*/false, &c);
  matmul_transposed({nullptr, 4, 0, 0, 1}, {nullptr, 4, 0, 0, 1}, /*add=*/false, &c);
  EXPECT_EQ(c, 3.0F);
}

}  // namespace
}  // namespace normlab::testing
