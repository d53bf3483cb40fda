// Activations of the MLP with the bias (and the channel scale of nGPT) before them, forward and backward.
//
//   z = scale o x + bias
//   gelu:   y = z Phi(z)                  Hendrycks and Gimpel 2016, arXiv 1606.08415; Phi exact, not the tanh form
//   gelu_tanh: y = z sigmoid(2 t), t = sqrt(2 / pi) (z + 0.044715 z^3)     the tanh form, as in GPT-2
//   relu:   y = max(z, 0)
//   swiglu: y = z_up o z_gate sigmoid(z_gate)               Shazeer 2020, arXiv 2002.05202; x holds [up | gate]
//   geglu:  y = z_up o gelu_tanh(z_gate)                    ibid., with the tanh form, as in Gemma
//
//   gelu_tanh: dz = dy (s + 2 z s (1 - s) dt/dz), s = sigmoid(2 t), dt/dz = sqrt(2 / pi) (1 + 3 * 0.044715 z^2)
//   gelu: dz = dy (Phi(z) + z phi(z)); relu: dz = dy [z > 0]
//   swiglu: dz_up = dy silu(z_gate), dz_gate = dy z_up sigmoid(z_gate) (1 + z_gate (1 - sigmoid(z_gate)))
//   geglu: dz_up = dy gelu_tanh(z_gate), dz_gate = dy z_up gelu_tanh'(z_gate)
//   dx = scale o dz, d_bias = sum over rows of dz, d_scale = sum over rows of dz o x
//
// x and dx are [rows, cols], contiguous; y and dy are [rows, cols], or [rows, cols / 2] where gated. The backward pass
// computes z again from x. Rows are independent: a call works on a range of them.
#pragma once

#include <cstddef>

#include "normlab/kernels/rows.h"

namespace normlab {

enum class Activation { gelu, gelu_tanh, relu, swiglu, geglu };
// x holds [up | gate].
constexpr bool is_gated(Activation kind) { return kind == Activation::swiglu || kind == Activation::geglu; }

struct ActivationSpec {
  Activation kind = Activation::gelu;
  size_t cols = 0;               // of x
  const float* bias = nullptr;   // [cols]; null: 0
  const float* scale = nullptr;  // [cols]; null: 1
};

struct ActivationBackward {
  const float* x = nullptr;
  const float* dy = nullptr;
  float* dx = nullptr;       // may be x, or dy where they have the same shape
  float* d_bias = nullptr;   // [row_blocks(rows), cols] partial sums, see rows.h; null: not wanted
  float* d_scale = nullptr;  // likewise
};

void activation_forward(const ActivationSpec& spec, const float* x, float* y, RowRange rows) noexcept;
void activation_backward(const ActivationSpec& spec, const ActivationBackward& args, RowRange rows) noexcept;

}  // namespace normlab
