// Scalar twin of decode_attention.cpp.
#include <algorithm>
#include <cmath>

#include "kernels/scalar/twins.h"

namespace normlab::scalar {

void decode_attention(const DecodeAttention& args, float* weights) noexcept {
  const size_t row = args.heads / args.group * args.d;
  for (size_t head = 0; head < args.heads; ++head) {
    const size_t channel = head / args.group * args.d;
    const auto place = [&](size_t j) { return (args.slots ? static_cast<size_t>(args.slots[j]) : j) * row + channel; };
    float largest = -INFINITY;
    for (size_t j = 0; j < args.keys; ++j) {
      double sum = 0.0;
      for (size_t i = 0; i < args.d; ++i) sum += double{args.q[head * args.d + i]} * args.k[place(j) + i];
      weights[j] = static_cast<float>(sum * args.scale);
      if (args.soft_cap > 0.0F) weights[j] = args.soft_cap * std::tanh(weights[j] / args.soft_cap);
      largest = std::max(largest, weights[j]);
    }
    double total = 0.0;
    for (size_t j = 0; j < args.keys; ++j) total += weights[j] = std::exp(weights[j] - largest);
    for (size_t i = 0; i < args.d; ++i) {
      double sum = 0.0;
      for (size_t j = 0; j < args.keys; ++j) sum += double{weights[j]} * args.v[place(j) + i];
      args.o[head * args.d + i] = static_cast<float>(sum / total);
    }
  }
}

}  // namespace normlab::scalar
