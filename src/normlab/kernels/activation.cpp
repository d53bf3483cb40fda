// Vector code of activation.h.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "normlab/kernels/activation.cpp"
#include <hwy/foreach_target.h>
// After foreach_target.h.
#include <hwy/highway.h>

#include <algorithm>

#include "normlab/kernels/activation.h"
#include "normlab/kernels/rows-inl.h"

HWY_BEFORE_NAMESPACE();
namespace normlab {
namespace HWY_NAMESPACE {
namespace {

// Phi(z) and exp(-z^2/2) of the normal distribution. The tail is Phi(-a) = exp(-a^2/2) (1 - u) P(u) with
// u = a / (a + 2.5) and a minimax P, P(0) = 1/2, so that it keeps its relative accuracy (5e-7 at worst, down to
// -9.4 where exp2_vec ends) where 1 + erf would cancel.
struct Normal {
  VecF cdf, bell;
};
HWY_INLINE Normal normal(VecF z) {
  const F32 df;
  const auto one = hn::Set(df, 1.0F);
  const auto a = hn::Min(hn::Abs(z), hn::Set(df, 16.0F));  // the bell is 0 from 9.5 on; keeps infinity out
  const auto u = hn::Div(a, hn::Add(a, hn::Set(df, 2.5F)));
  // exp2(-a^2/2 log2(e)); what rounding takes from the exponent comes back to first order as a factor.
  const auto log2e_half = hn::Set(df, -0.72134751F), log2e_rest = hn::Set(df, -9.62981495e-09F);
  const auto square = hn::Mul(a, a), square_rest = hn::MulSub(a, a, square);
  const auto exponent = hn::Mul(square, log2e_half);
  auto rest = hn::MulSub(square, log2e_half, exponent);
  rest = hn::MulAdd(square_rest, log2e_half, hn::MulAdd(square, log2e_rest, rest));
  const auto power = exp2_vec(exponent);
  const auto bell = hn::MulAdd(hn::Mul(power, rest), hn::Set(df, 0.6931471805F), power);
  auto p = hn::MulAdd(hn::Set(df, -0.03154629096388817F), u, hn::Set(df, 0.11053625494241714F));
  p = hn::MulAdd(p, u, hn::Set(df, -0.12330835312604904F));
  p = hn::MulAdd(p, u, hn::Set(df, 0.053566962480545044F));
  p = hn::MulAdd(p, u, hn::Set(df, -0.05914485454559326F));
  p = hn::MulAdd(p, u, hn::Set(df, 0.02221321314573288F));
  p = hn::MulAdd(p, u, hn::Set(df, 0.11677620559930801F));
  p = hn::MulAdd(p, u, hn::Set(df, 0.0678408145904541F));
  p = hn::MulAdd(p, u, hn::Set(df, -0.4973568320274353F));
  p = hn::MulAdd(p, u, hn::Set(df, 0.5F));
  const auto tail = hn::Mul(bell, hn::NegMulAdd(u, p, p));
  return {hn::IfThenElse(hn::Lt(z, hn::Zero(df)), tail, hn::Sub(one, tail)), bell};
}

HWY_INLINE VecF sigmoid(VecF z) {
  const F32 df;
  const auto one = hn::Set(df, 1.0F);
  const auto e = exp2_vec(hn::Mul(hn::Abs(z), hn::Set(df, -1.4426950408889634F)));  // exp(-|z|) never overflows
  return hn::Div(hn::IfThenElse(hn::Lt(z, hn::Zero(df)), e, one), hn::Add(one, e));
}

struct Gelu {
  static HWY_INLINE VecF value(VecF z) { return hn::Mul(z, normal(z).cdf); }
  static HWY_INLINE VecF slope(VecF z) {
    const Normal n = normal(z);
    const auto bounded = hn::Max(hn::Min(z, hn::Set(F32(), 16.0F)), hn::Set(F32(), -16.0F));  // 0 * inf is no slope
    return hn::MulAdd(hn::Mul(bounded, hn::Set(F32(), 0.3989422804F)), n.bell, n.cdf);
  }
};

struct GeluTanh {
  static constexpr float root = 0.7978845608F, cubic = 0.044715F;  // sqrt(2 / pi)
  // Beyond 16 the sigmoid is 0 or 1; keeps cubes finite.
  static HWY_INLINE VecF bounded(VecF z) { return hn::Max(hn::Min(z, hn::Set(F32(), 16.0F)), hn::Set(F32(), -16.0F)); }
  // sigmoid(a) and its slope, with a = 2 t; 1 - sigmoid would cancel.
  struct Gate {
    VecF value, slope;
  };
  static HWY_INLINE Gate gate(VecF z) {
    const F32 df;
    const auto one = hn::Set(df, 1.0F);
    const auto inner = hn::MulAdd(hn::Mul(hn::Mul(z, z), hn::Set(df, cubic)), z, z);
    // exp2(-|inner| 2 sqrt(2 / pi) log2(e)); what rounding takes from the exponent comes back to first order.
    const auto size = hn::Abs(inner), factor = hn::Set(df, -2.30220819F), factor_rest = hn::Set(df, -1.29484024e-08F);
    const auto exponent = hn::Mul(size, factor);
    const auto rest = hn::MulAdd(size, factor_rest, hn::MulSub(size, factor, exponent));
    const auto power = exp2_vec(exponent);
    const auto e = hn::MulAdd(hn::Mul(power, rest), hn::Set(df, 0.6931471805F), power);
    const auto sum = hn::Add(one, e);
    return {hn::Div(hn::IfThenElse(hn::Lt(z, hn::Zero(df)), e, one), sum), hn::Div(e, hn::Mul(sum, sum))};
  }
  static HWY_INLINE VecF value(VecF z) { return hn::Mul(z, gate(bounded(z)).value); }
  static HWY_INLINE VecF slope(VecF z) {
    const auto b = bounded(z), one = hn::Set(F32(), 1.0F);
    const Gate g = gate(b);
    const auto inner = hn::MulAdd(hn::Mul(b, b), hn::Set(F32(), 3.0F * cubic), one);
    return hn::MulAdd(b, hn::Mul(g.slope, hn::Mul(inner, hn::Set(F32(), 2.0F * root))), g.value);
  }
};

struct Silu {
  static HWY_INLINE VecF value(VecF z) { return hn::Mul(z, sigmoid(z)); }
  static HWY_INLINE VecF slope(VecF z) {
    const auto one = hn::Set(F32(), 1.0F), s = sigmoid(z);
    return hn::Mul(s, hn::MulAdd(z, hn::Sub(one, s), one));
  }
};

struct Relu {
  static HWY_INLINE VecF value(VecF z) { return hn::Max(z, hn::Zero(F32())); }
  static HWY_INLINE VecF slope(VecF z) { return hn::IfThenElseZero(hn::Gt(z, hn::Zero(F32())), hn::Set(F32(), 1.0F)); }
};

HWY_INLINE VecF pre_activation(const ActivationSpec& spec, VecF x, size_t c, size_t left) {
  if (spec.scale) x = hn::Mul(x, load_left(spec.scale + c, left));
  if (spec.bias) x = hn::Add(x, load_left(spec.bias + c, left));
  return x;
}

// Writes dx at column c of the row that starts at `at`, and adds to the sums over rows of its block.
struct GradientRow {
  const ActivationSpec& spec;
  const ActivationBackward& args;
  size_t at, block;

  HWY_INLINE void put(size_t c, size_t left, VecF x, VecF dz) const {
    if (args.d_bias) add_left(dz, args.d_bias + block + c, left);
    if (args.d_scale) add_left(hn::Mul(dz, x), args.d_scale + block + c, left);
    if (spec.scale) dz = hn::Mul(dz, load_left(spec.scale + c, left));
    store_left(dz, args.dx + at + c, left);
  }
};

template <class Function>
HWY_INLINE void forward_row(const ActivationSpec& spec, const float* x, float* y) {
  for (size_t c = 0; c < spec.cols; c += kStep) {
    const size_t left = spec.cols - c;
    store_left(Function::value(pre_activation(spec, load_left(x + c, left), c, left)), y + c, left);
  }
}
template <class Function>
HWY_INLINE void backward_row(const GradientRow& out) {
  for (size_t c = 0; c < out.spec.cols; c += kStep) {
    const size_t left = out.spec.cols - c;
    const auto x = load_left(out.args.x + out.at + c, left), dy = load_left(out.args.dy + out.at + c, left);
    out.put(c, left, x, hn::Mul(dy, Function::slope(pre_activation(out.spec, x, c, left))));
  }
}

template <class Gate>
HWY_INLINE void gated_row(const ActivationSpec& spec, const float* x, float* y) {
  const size_t half = spec.cols / 2;
  for (size_t c = 0; c < half; c += kStep) {
    const size_t left = half - c;
    const auto up = pre_activation(spec, load_left(x + c, left), c, left);
    const auto gate = pre_activation(spec, load_left(x + half + c, left), half + c, left);
    store_left(hn::Mul(up, Gate::value(gate)), y + c, left);
  }
}
template <class Gate>
HWY_INLINE void gated_backward_row(const GradientRow& out, const float* dy) {
  const size_t half = out.spec.cols / 2;
  for (size_t c = 0; c < half; c += kStep) {
    const size_t left = half - c;
    const auto x_up = load_left(out.args.x + out.at + c, left);
    const auto x_gate = load_left(out.args.x + out.at + half + c, left);
    const auto up = pre_activation(out.spec, x_up, c, left);
    const auto gate = pre_activation(out.spec, x_gate, half + c, left);
    const auto d = load_left(dy + c, left);
    out.put(c, left, x_up, hn::Mul(d, Gate::value(gate)));
    out.put(half + c, left, x_gate, hn::Mul(d, hn::Mul(up, Gate::slope(gate))));
  }
}

void forward(const ActivationSpec& spec, const float* x, float* y, RowRange rows) {
  for (size_t row = rows.begin; row < rows.end; ++row) {
    const float* from = x + row * spec.cols;
    switch (spec.kind) {
      case Activation::gelu:
        forward_row<Gelu>(spec, from, y + row * spec.cols);
        break;
      case Activation::gelu_tanh:
        forward_row<GeluTanh>(spec, from, y + row * spec.cols);
        break;
      case Activation::relu:
        forward_row<Relu>(spec, from, y + row * spec.cols);
        break;
      case Activation::swiglu:
        gated_row<Silu>(spec, from, y + row * (spec.cols / 2));
        break;
      case Activation::geglu:
        gated_row<GeluTanh>(spec, from, y + row * (spec.cols / 2));
        break;
    }
  }
}

void backward(const ActivationSpec& spec, const ActivationBackward& args, RowRange rows) {
  for (size_t row = rows.begin; row < rows.end; ++row) {
    const GradientRow out{spec, args, row * spec.cols, row / kRowsPerBlock * spec.cols};
    if (row % kRowsPerBlock == 0)
      for (float* sums : {args.d_bias, args.d_scale})
        if (sums) std::fill(sums + out.block, sums + out.block + spec.cols, 0.0F);
    switch (spec.kind) {
      case Activation::gelu:
        backward_row<Gelu>(out);
        break;
      case Activation::gelu_tanh:
        backward_row<GeluTanh>(out);
        break;
      case Activation::relu:
        backward_row<Relu>(out);
        break;
      case Activation::swiglu:
        gated_backward_row<Silu>(out, args.dy + row * (spec.cols / 2));
        break;
      case Activation::geglu:
        gated_backward_row<GeluTanh>(out, args.dy + row * (spec.cols / 2));
        break;
    }
  }
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace normlab
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace normlab {

HWY_EXPORT(forward);
HWY_EXPORT(backward);

void activation_forward(const ActivationSpec& spec, const float* x, float* y, RowRange rows) noexcept {
  HWY_DYNAMIC_DISPATCH(forward)(spec, x, y, rows);
}

void activation_backward(const ActivationSpec& spec, const ActivationBackward& args, RowRange rows) noexcept {
  HWY_DYNAMIC_DISPATCH(backward)(spec, args, rows);
}

}  // namespace normlab
#endif
