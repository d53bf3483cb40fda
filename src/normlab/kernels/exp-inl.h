// Vector exp2, log2, powers and tanh for every instruction set; relative errors are those of single precision.
#if defined(NORMLAB_KERNELS_EXP_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef NORMLAB_KERNELS_EXP_INL_H_
#undef NORMLAB_KERNELS_EXP_INL_H_
#else
#define NORMLAB_KERNELS_EXP_INL_H_
#endif

#include <hwy/highway.h>

#include <cmath>
#include <cstdint>

HWY_BEFORE_NAMESPACE();
namespace normlab {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using F32 = hn::ScalableTag<float>;
using I32 = hn::RebindToSigned<F32>;
using U32 = hn::RebindToUnsigned<F32>;
using VecF = hn::Vec<F32>;
using MaskF = hn::Mask<F32>;

// 2^x for x <= 127, NaN for NaN, and 0 below -64: nothing here feels less than 2^-64, and products with it would
// become denormal, which are slow. Max relative error 8e-8 (minimax of degree 6).
HWY_INLINE VecF exp2_vec(VecF x) {
  const F32 df;
  const U32 du;
  // Adding 1.5 * 2^23 + 127 rounds to an integer and leaves the biased exponent in the low bits.
  const auto magic = hn::Set(df, 12583039.0F);
  const auto shifted = hn::Add(x, magic);
  const auto fraction = hn::Sub(x, hn::Sub(shifted, magic));
  const auto power = hn::BitCast(df, hn::ShiftLeft<23>(hn::BitCast(du, shifted)));
  auto y = hn::MulAdd(hn::Set(df, 0.00015353361959569156F), fraction, hn::Set(df, 0.0013398873852565885F));
  y = hn::MulAdd(y, fraction, hn::Set(df, 0.00961843691766262F));
  y = hn::MulAdd(y, fraction, hn::Set(df, 0.055503323674201965F));
  y = hn::MulAdd(y, fraction, hn::Set(df, 0.24022647738456726F));
  y = hn::MulAdd(y, fraction, hn::Set(df, 0.6931471824645996F));
  y = hn::MulAdd(y, fraction, hn::Set(df, 1.0F));
  return hn::IfThenZeroElse(hn::Lt(x, hn::Set(df, -64.0F)), hn::Mul(y, power));
}

// log2(x) = exponent + log2(mantissa) with the mantissa in [sqrt(1/2), sqrt(2)); x > 0 and normal.
struct Log2Parts {
  VecF exponent, mantissa_log2;
};
HWY_INLINE Log2Parts log2_parts(VecF x) {
  const F32 df;
  const I32 di;
  const auto sqrt_half = hn::Set(di, 0x3f3504f3);
  const auto offset = hn::Sub(hn::BitCast(di, x), sqrt_half);
  const auto exponent = hn::ShiftRight<23>(offset);
  const auto mantissa = hn::BitCast(df, hn::Add(hn::And(offset, hn::Set(di, 0x007fffff)), sqrt_half));
  const auto z = hn::Sub(mantissa, hn::Set(df, 1.0F));
  auto y = hn::MulAdd(hn::Set(df, 0.12601716816425323F), z, hn::Set(df, -0.20641392469406128F));
  y = hn::MulAdd(y, z, hn::Set(df, 0.2152208685874939F));
  y = hn::MulAdd(y, z, hn::Set(df, -0.2390618920326233F));
  y = hn::MulAdd(y, z, hn::Set(df, 0.28799182176589966F));
  y = hn::MulAdd(y, z, hn::Set(df, -0.3606990873813629F));
  y = hn::MulAdd(y, z, hn::Set(df, 0.48090726137161255F));
  y = hn::MulAdd(y, z, hn::Set(df, -0.7213473916053772F));
  y = hn::MulAdd(hn::Mul(y, z), z, hn::Mul(z, hn::Set(df, 1.4426950408889634F)));
  return {hn::ConvertTo(df, exponent), y};
}
HWY_INLINE VecF log2_vec(VecF x) {
  const auto parts = log2_parts(x);
  return hn::Add(parts.exponent, parts.mantissa_log2);
}

// x^exponent for x >= 0 and any exponent; 0 at x = 0. Relative error grows with |exponent log2 x|, which is small
// where the result is not.
struct PowAny {
  float exponent;
  HWY_INLINE VecF operator()(VecF x) const {
    const F32 df;
    const auto tiny = hn::Set(df, 1.17549435e-38F);
    const auto y = exp2_vec(hn::Min(hn::Mul(hn::Set(df, exponent), log2_vec(hn::Max(x, tiny))), hn::Set(df, 127.0F)));
    return hn::IfThenElseZero(hn::Gt(x, hn::Zero(df)), y);
  }
};

// x^(kHalves / 2) for x >= 0; a negative or zero power of 0 is 0, as the gradient of |x|^p at 0 is taken.
template <int kHalves>
struct PowHalf {
  HWY_INLINE VecF operator()(VecF x) const {
    const F32 df;
    if constexpr (kHalves <= 0) {
      const auto y = kHalves == 0 ? hn::Set(df, 1.0F) : hn::Div(hn::Set(df, 1.0F), hn::Sqrt(x));
      return hn::IfThenElseZero(hn::Gt(x, hn::Zero(df)), y);
    } else if constexpr (kHalves == 1) {
      return hn::Sqrt(x);
    } else if constexpr (kHalves == 2) {
      return x;
    } else if constexpr (kHalves % 4 == 0) {
      return PowHalf<kHalves / 2>()(hn::Mul(x, x));
    } else {
      return hn::Mul(x, PowHalf<kHalves - 2>()(x));
    }
  }
};

// Calls body with the cheapest power functor for the exponent: multiples of 1/2 from -1/2 to 4, or exp2(log2).
template <class Body>
HWY_INLINE void with_power(float exponent, const Body& body) {
  const float halves = 2.0F * exponent;
  if (halves != std::floor(halves) || halves < -1.0F || halves > 8.0F) return body(PowAny{exponent});
  switch (static_cast<int>(halves)) {
    case -1:
      return body(PowHalf<-1>());
    case 0:
      return body(PowHalf<0>());
    case 1:
      return body(PowHalf<1>());
    case 2:
      return body(PowHalf<2>());
    case 3:
      return body(PowHalf<3>());
    case 4:
      return body(PowHalf<4>());
    case 5:
      return body(PowHalf<5>());
    case 6:
      return body(PowHalf<6>());
    case 7:
      return body(PowHalf<7>());
    default:
      return body(PowHalf<8>());
  }
}

// x^(1/p) for normal x >= 1. The integer and the fraction of log2(x) are divided by p apart, so that no bits are lost.
HWY_INLINE VecF root_vec(VecF x, float p) {
  const F32 df;
  const float inverse = 1.0F / p;
  const auto high = hn::Set(df, inverse);
  const auto low = hn::Set(df, static_cast<float>(1.0 / static_cast<double>(p) - static_cast<double>(inverse)));
  const auto parts = log2_parts(x);
  const auto whole = hn::Round(hn::Mul(hn::Add(parts.exponent, parts.mantissa_log2), high));
  const auto fraction = hn::Add(hn::MulSub(parts.exponent, high, whole),
                                hn::MulAdd(parts.exponent, low, hn::Mul(parts.mantissa_log2, high)));
  const auto scale = hn::BitCast(df, hn::ShiftLeft<23>(hn::Add(hn::ConvertTo(I32(), whole), hn::Set(I32(), 127))));
  return hn::Mul(exp2_vec(fraction), scale);
}

// tanh(x); near 0, where 1 - exp2 would cancel, an odd polynomial.
HWY_INLINE VecF tanh_vec(VecF x) {
  const F32 df;
  const auto size = hn::Abs(x);
  const auto e = exp2_vec(hn::Mul(size, hn::Set(df, -2.8853900817779268F)));  // exp(-2|x|)
  const auto one = hn::Set(df, 1.0F);
  const auto large = hn::Div(hn::Sub(one, e), hn::Add(one, e));
  const auto square = hn::Mul(x, x);
  auto y = hn::MulAdd(hn::Set(df, -0.00886323552990220F), square, hn::Set(df, 0.0218694885361552F));
  y = hn::MulAdd(y, square, hn::Set(df, -0.0539682539682540F));
  y = hn::MulAdd(y, square, hn::Set(df, 0.133333333333333F));
  y = hn::MulAdd(y, square, hn::Set(df, -0.333333333333333F));
  const auto small = hn::MulAdd(hn::Mul(y, square), size, size);
  return hn::CopySign(hn::IfThenElse(hn::Lt(size, hn::Set(df, 0.25F)), small, large), x);
}

}  // namespace HWY_NAMESPACE
}  // namespace normlab
HWY_AFTER_NAMESPACE();

#endif
