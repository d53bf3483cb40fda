#include "normlab/ops/matmul.h"

#include <ATen/Parallel.h>

#include "normlab/kernels/isa.h"
#include "normlab/kernels/matmul.h"

// Fortran's interface of BLAS, weak: a libtorch for another processor may not have it.
extern "C" [[gnu::weak]] void sgemm_(const char* trans_a, const char* trans_b, const int* m, const int* n, const int* k,
                                     const float* alpha, const float* a, const int* lda, const float* b, const int* ldb,
                                     const float* beta, float* c, const int* ldc);

namespace normlab {
namespace {

torch::Tensor packed_copy(const MatrixView& b) {
  torch::Tensor packed = torch::empty({static_cast<int64_t>(packed_floats(b.rows, b.cols))}, torch::kFloat32);
  pack_matrix(b, packed.mutable_data_ptr<float>());
  return packed;
}

struct RightFactor {
  const float* packed;
  size_t rows, cols;
};

// Rows are shared out in whole tiles; inside a thread of the stepper this is one call.
void rows_times(const float* a, int64_t rows, RightFactor b, bool add, float* c) {
  constexpr int64_t tile = 6, rows_worth_a_thread = 16 * tile;
  at::parallel_for(0, (rows + tile - 1) / tile, rows_worth_a_thread / tile, [&](int64_t begin, int64_t end) {
    const auto first = static_cast<size_t>(begin * tile), last = static_cast<size_t>(std::min(rows, end * tile));
    matmul_packed({a + first * b.rows, last - first, b.rows, b.rows, 1}, b.packed, b.cols, add, c + first * b.cols);
  });
}

}  // namespace

void PackedWeight::pack(const torch::Tensor& weight, bool for_backward) {
  if (holds(weight)) return;
  const auto out = static_cast<size_t>(weight.size(0)), in = static_cast<size_t>(weight.size(1));
  const MatrixView w{weight.const_data_ptr<float>(), out, in, in, 1};
  forward_ = packed_copy(w.transposed());
  backward_ = for_backward ? packed_copy(w) : torch::Tensor();
  data_ = weight.const_data_ptr();
  version_ = weight._version();
}

void product_forward(MatrixSize size, const float* x, const PackedWeight& weight, bool add, float* y) {
  const auto in = static_cast<size_t>(size.in), out = static_cast<size_t>(size.out);
  rows_times(x, size.rows, {weight.forward(), in, out}, add, y);
}

void product_backward(MatrixSize size, const float* dy, const PackedWeight& weight, float* dx) {
  const auto in = static_cast<size_t>(size.in), out = static_cast<size_t>(size.out);
  rows_times(dy, size.rows, {weight.backward(), out, in}, /*add=*/false, dx);
}

void product_weight(MatrixSize size, const float* x, const float* dy, bool add, float* d_weight) {
  const auto rows = static_cast<size_t>(size.rows), in = static_cast<size_t>(size.in),
             out = static_cast<size_t>(size.out);
  static const bool ours = !sgemm_ || !isa_name().starts_with("AVX3");
  if (ours) return matmul_transposed({dy, rows, out, out, 1}, {x, rows, in, in, 1}, add, d_weight);
  // BLAS sees row-major matrices as their transposes: dW^T [in, out] = x^T dy.
  const int m = static_cast<int>(in), n = static_cast<int>(out), k = static_cast<int>(rows);
  const float one = 1.0F, beta = add ? 1.0F : 0.0F;
  sgemm_("N", "T", &m, &n, &k, &one, x, &m, dy, &n, &beta, d_weight, &m);
}

}  // namespace normlab
