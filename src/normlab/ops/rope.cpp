#include "normlab/ops/rope.h"

namespace normlab {

using torch::Tensor;
using torch::indexing::None;
using torch::indexing::Slice;

RopeTable make_rope(int64_t length, int64_t d_head, double base, RopePairing pairing, torch::TensorOptions options) {
  const auto real = options.dtype(torch::kFloat64);
  const Tensor frequency = torch::pow(base, torch::arange(0, d_head, 2, real) * (-1.0 / static_cast<double>(d_head)));
  const Tensor angle = torch::arange(length, real).unsqueeze(1) * frequency;
  return {pairing, angle.cos().to(options.dtype()), angle.sin().to(options.dtype())};
}

Tensor rotate(const Tensor& x_bthd, const RopeTable& table, int64_t first) {
  const int64_t length = x_bthd.size(1);
  const Tensor cos = table.cos.slice(0, first, first + length).unsqueeze(1);  // [t, 1, d/2]: the same for all heads
  const Tensor sin = table.sin.slice(0, first, first + length).unsqueeze(1);
  if (table.pairing == RopePairing::half) {
    const auto halves = x_bthd.chunk(2, -1);
    return torch::cat({halves[0] * cos - halves[1] * sin, halves[1] * cos + halves[0] * sin}, -1);
  }
  const Tensor even = x_bthd.index({"...", Slice(0, None, 2)}), odd = x_bthd.index({"...", Slice(1, None, 2)});
  return torch::stack({even * cos - odd * sin, odd * cos + even * sin}, -1).flatten(-2);
}

}  // namespace normlab
