#include "normlab/ops/dropout.h"

namespace normlab {
namespace {

using torch::Tensor;

constexpr int64_t low_32_bits = 0xffffffffLL;

// mix32 of base/random.h on int64 lanes: products wrap modulo 2^64, of which the low 32 bits are right.
Tensor mix32(Tensor x) {
  x = x.bitwise_xor(x.bitwise_right_shift(16));
  x = (x * int64_t{0x7feb352d}).bitwise_and(low_32_bits);
  x = x.bitwise_xor(x.bitwise_right_shift(15));
  x = (x * int64_t{0x846ca68b}).bitwise_and(low_32_bits);
  return x.bitwise_xor(x.bitwise_right_shift(16));
}

// Of x among the rows of the whole tensor.
Tensor row_numbers(const Tensor& x, int64_t rows, const Dropout::Block& block, torch::TensorOptions whole) {
  if (block.of_rows == 0) return torch::arange(rows, whole);
  const int64_t here = x.size(-2);
  const Tensor first = torch::arange(rows / here, whole) * block.of_rows + block.first;
  return (first.unsqueeze(1) + torch::arange(here, whole)).flatten();
}

}  // namespace

Tensor dropout(const Tensor& x, const Dropout& how) {
  if (how.rate <= 0.0) return x;
  const int64_t columns = x.size(-1), rows = x.numel() / std::max<int64_t>(columns, 1);
  const auto whole = torch::TensorOptions().dtype(torch::kInt64).device(x.device());
  const Tensor row = how.first_row + row_numbers(x, rows, how.block, whole) + int64_t{how.key.k0};
  const Tensor row_key = mix32(mix32(row.bitwise_and(low_32_bits)).bitwise_xor(int64_t{how.key.k1}));
  const Tensor column = (torch::arange(columns, whole) * int64_t{0x9e3779b9}).bitwise_and(low_32_bits);
  const Tensor bits = mix32((row_key.unsqueeze(1) + column).bitwise_and(low_32_bits));
  const Tensor keep = bits.ge(int64_t{drop_threshold(how.rate)}).view(x.sizes());
  return x * keep.to(x.scalar_type()) / (1.0 - how.rate);
}

}  // namespace normlab
