#include "normlab/ops/rope.h"

#include <numbers>

namespace normlab {

using torch::Tensor;
using torch::indexing::None;
using torch::indexing::Slice;

namespace {

// Where the tables are computed, so that they are the same on all devices.
torch::TensorOptions on_cpu(torch::TensorOptions options) { return options.dtype(torch::kFloat64).device(torch::kCPU); }

Tensor frequencies(int64_t d_head, double base, torch::TensorOptions real) {
  return torch::pow(base, torch::arange(0, d_head, 2, real) * (-1.0 / static_cast<double>(d_head)));
}

// Llama 3.1: waves that go at most once through the original length are stretched, those that go four times are kept,
// and in between the share that is kept grows with the number of turns.
Tensor scaled(const Tensor& frequency, const ModelConfig& c) {
  if (c.rope_scaling == RopeScaling::none) return frequency;
  if (c.rope_scaling == RopeScaling::linear) return frequency / c.rope_factor;
  constexpr double least_turns = 1.0, most_turns = 4.0;
  const Tensor turns = frequency * (c.rope_original_len / (2.0 * std::numbers::pi));
  const Tensor kept = ((turns - least_turns) / (most_turns - least_turns)).clamp(0.0, 1.0);
  return frequency * (kept + (1.0 - kept) / c.rope_factor);
}

RopeTable table_of(const Tensor& frequency, int64_t length, RopePairing pairing, torch::TensorOptions options) {
  const Tensor angle = torch::arange(length, on_cpu(options)).unsqueeze(1) * frequency;
  const auto as_wanted = [&](const Tensor& x) {
    return x.to(options.device(), c10::typeMetaToScalarType(options.dtype()));
  };
  return {pairing, as_wanted(angle.cos()), as_wanted(angle.sin())};
}

}  // namespace

RopeTable make_rope(int64_t length, int64_t d_head, double base, RopePairing pairing, torch::TensorOptions options) {
  return table_of(frequencies(d_head, base, on_cpu(options)), length, pairing, options);
}

RopeTable make_rope(const ModelConfig& c, bool local, torch::TensorOptions options) {
  const auto real = on_cpu(options);
  const Tensor frequency = local && c.rope_base_local > 0.0 ? frequencies(c.d_head, c.rope_base_local, real)
                                                            : scaled(frequencies(c.d_head, c.rope_base, real), c);
  return table_of(frequency, c.seq_len, c.rope_pairing, options);
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
