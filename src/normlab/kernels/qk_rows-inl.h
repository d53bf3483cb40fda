// Vector code of qk_rows.h on blocks of rows: forward into padded scratch rows, backward out of them.
#if defined(NORMLAB_KERNELS_QK_ROWS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef NORMLAB_KERNELS_QK_ROWS_INL_H_
#undef NORMLAB_KERNELS_QK_ROWS_INL_H_
#else
#define NORMLAB_KERNELS_QK_ROWS_INL_H_
#endif

#include <hwy/highway.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "normlab/kernels/exp-inl.h"
#include "normlab/kernels/qk_rows.h"

HWY_BEFORE_NAMESPACE();
namespace normlab {
namespace HWY_NAMESPACE {

constexpr size_t kLanes = HWY_LANES(float);
constexpr size_t kRowBlock = 16;  // rows of a block at most: whole vectors, and few enough to stay in the first cache

constexpr size_t padded(size_t d) { return (d + kLanes - 1) / kLanes * kLanes; }

// A block of rows in scratch: row r at data + r * padded(d), its padding channels zero.
struct RowBlock {
  size_t rows, d;
  ptrdiff_t first;  // row of the rotary table that belongs to row 0
  size_t stride() const { return padded(d); }
};

// What the backward pass needs of a row: dx = scale * (g - pull * w * (g . y)).
struct RowFactors {
  float* scale;
  float* pull;
};

// Copies a strided row, or one multiplied by `factor`, and zeroes the padding.
HWY_INLINE void load_row(const float* from, size_t d, VecF factor, float* to) {
  const F32 df;
  size_t h = 0;
  for (; h + kLanes <= d; h += kLanes) hn::Store(hn::Mul(hn::LoadU(df, from + h), factor), df, to + h);
  if (h == d) return;
  HWY_ALIGN float tail[kLanes] = {};
  std::memcpy(tail, from + h, (d - h) * sizeof(float));
  hn::Store(hn::Mul(hn::Load(df, tail), factor), df, to + h);
}
HWY_INLINE void store_row(const float* from, size_t d, VecF factor, float* to) {
  const F32 df;
  size_t h = 0;
  for (; h + kLanes <= d; h += kLanes) hn::StoreU(hn::Mul(hn::Load(df, from + h), factor), df, to + h);
  if (h == d) return;
  HWY_ALIGN float tail[kLanes];
  hn::Store(hn::Mul(hn::Load(df, from + h), factor), df, tail);
  std::memcpy(to + h, tail, (d - h) * sizeof(float));
}

// Rotates the pairs of one row in place by the angles of the table, or back by them (direction = -1).
HWY_INLINE void rotate_row(const RowTransform& t, ptrdiff_t position, size_t d, float direction, float* row) {
  const F32 df;
  const size_t half = d / 2;
  const float* cos = t.cos + position * static_cast<ptrdiff_t>(half);
  const float* sin = t.sin + position * static_cast<ptrdiff_t>(half);
  const bool paired = t.pairing == RopePairing::interleaved;
  const auto sign = hn::Set(df, direction);
  size_t i = 0;
  for (; i + kLanes <= half; i += kLanes) {
    VecF a, b;
    if (paired) {
      hn::LoadInterleaved2(df, row + 2 * i, a, b);
    } else {
      a = hn::LoadU(df, row + i);
      b = hn::LoadU(df, row + half + i);
    }
    const auto c = hn::LoadU(df, cos + i);
    const auto s = hn::Mul(sign, hn::LoadU(df, sin + i));
    const auto x = hn::NegMulAdd(b, s, hn::Mul(a, c));
    const auto y = hn::MulAdd(a, s, hn::Mul(b, c));
    if (paired) {
      hn::StoreInterleaved2(x, y, df, row + 2 * i);
    } else {
      hn::StoreU(x, df, row + i);
      hn::StoreU(y, df, row + half + i);
    }
  }
  for (; i < half; ++i) {
    float& a = row[paired ? 2 * i : i];
    float& b = row[paired ? 2 * i + 1 : half + i];
    const float x = a * cos[i] - b * (direction * sin[i]);
    b = a * (direction * sin[i]) + b * cos[i];
    a = x;
  }
}
HWY_INLINE void rotate_rows(const RowTransform& t, const RowBlock& block, float direction, float* rows) {
  for (size_t r = 0; r < block.rows; ++r)
    rotate_row(t, block.first + static_cast<ptrdiff_t>(r), block.d, direction, rows + r * block.stride());
}

// Rows that are read in whole vectors: those of the caller when d is a multiple of the vector length, or padded ones.
// largest[r] = max|x_r|.
HWY_INLINE void row_maxima(ConstRows x, const RowBlock& block, float* largest) {
  const F32 df;
  for (size_t r = 0; r < block.rows; ++r, x.data += x.row_stride) {
    auto most = hn::Abs(hn::LoadU(df, x.data));
    for (size_t h = kLanes; h < block.d; h += kLanes) most = hn::Max(most, hn::Abs(hn::LoadU(df, x.data + h)));
    largest[r] = hn::GetLane(hn::MaxOfLanes(df, most));
  }
}

// sums[r] = sum_h term(x_rh, r); term(0, r) must be 0.
template <class Term>
HWY_INLINE void row_sums(ConstRows x, const RowBlock& block, const Term& term, float* sums) {
  const F32 df;
  for (size_t r = 0; r < block.rows; ++r, x.data += x.row_stride) {
    auto sum = term(hn::LoadU(df, x.data), r);
    for (size_t h = kLanes; h < block.d; h += kLanes) sum = hn::Add(sum, term(hn::LoadU(df, x.data + h), r));
    sums[r] = hn::GetLane(hn::SumOfLanes(df, sum));
  }
}

// (sum x^p)^(1/p) for a vector of rows; a sum of 0 gives something tiny.
HWY_INLINE VecF lp_root(VecF sum, float p) {
  if (p == 1.0F) return sum;
  if (p == 2.0F) return hn::Sqrt(sum);
  if (p == 4.0F) return hn::Sqrt(hn::Sqrt(sum));
  if (p == 0.5F) return hn::Mul(sum, sum);
  return root_vec(hn::Max(sum, hn::Set(F32(), 1e-37F)), p);
}

// Whether every sum of the block is far from overflow and underflow, as sums of unscaled powers mostly are.
HWY_INLINE bool safe_sums(const RowBlock& block, const float* sums) {
  const F32 df;
  for (size_t r = 0; r < block.rows; r += kLanes) {
    const auto sum = hn::Load(df, sums + r);
    const auto safe = hn::And(hn::Gt(sum, hn::Set(df, 1e-15F)), hn::Lt(sum, hn::Set(df, 1e15F)));
    if (!hn::AllTrue(df, hn::Or(safe, hn::Not(hn::FirstN(df, block.rows - r))))) return false;
  }
  return true;
}

// scale = 1 / max(M root, eps), with `inverse` = 1 / M.
HWY_INLINE void lp_scale(float eps, VecF largest, VecF inverse, VecF root, size_t row, RowFactors out) {
  const F32 df;
  const auto one = hn::Set(df, 1.0F);
  const auto clamped = hn::Le(hn::Mul(largest, root), hn::Set(df, eps));
  hn::Store(hn::IfThenElse(clamped, hn::Set(df, 1.0F / eps), hn::Div(inverse, root)), df, out.scale + row);
  hn::Store(hn::IfThenZeroElse(clamped, one), df, out.pull + row);
}

// Norms without the maximum: exact enough for powers made of products and roots, while nothing overflows.
template <class Power>
HWY_INLINE bool plain_lp_factors(const RowTransform& t, const RowBlock& block, ConstRows x, const Power& power,
                                 RowFactors out) {
  const F32 df;
  const auto one = hn::Set(df, 1.0F);
  HWY_ALIGN float sums[kRowBlock] = {};
  row_sums(
      x, block, [&](VecF v, size_t) HWY_ATTR { return power(hn::Abs(v)); }, sums);
  if (!safe_sums(block, sums)) return false;
  for (size_t r = 0; r < block.rows; r += kLanes)
    lp_scale(t.eps, one, one, lp_root(hn::Load(df, sums + r), t.p), r, out);
  return true;
}

inline void scaled_lp_factors(const RowTransform& t, const RowBlock& block, ConstRows x, RowFactors out) {
  const F32 df;
  HWY_ALIGN float largest[kRowBlock] = {};
  HWY_ALIGN float inverse[kRowBlock];
  HWY_ALIGN float sums[kRowBlock] = {};
  const auto one = hn::Set(df, 1.0F);
  row_maxima(x, block, largest);
  for (size_t r = 0; r < block.rows; r += kLanes)  // the smallest M whose inverse is finite
    hn::Store(hn::Div(one, hn::Max(hn::Load(df, largest + r), hn::Set(df, 3e-39F))), df, inverse + r);
  const bool largest_only = std::isinf(t.p);
  if (!largest_only)
    with_power(t.p, [&](auto power) HWY_ATTR {
      row_sums(
          x, block, [&](VecF v, size_t r) HWY_ATTR { return power(hn::Abs(hn::Mul(v, hn::Set(df, inverse[r])))); },
          sums);
    });
  for (size_t r = 0; r < block.rows; r += kLanes)
    lp_scale(t.eps, hn::Load(df, largest + r), hn::Load(df, inverse + r),
             largest_only ? one : lp_root(hn::Load(df, sums + r), t.p), r, out);
}

inline void lp_factors(const RowTransform& t, const RowBlock& block, ConstRows x, RowFactors out) {
  bool done = false;
  if (t.p <= 4.0F && 2.0F * t.p == std::floor(2.0F * t.p))
    with_power(t.p, [&](auto power) HWY_ATTR { done = plain_lp_factors(t, block, x, power, out); });
  if (!done) scaled_lp_factors(t, block, x, out);
}

// Scale of rms and layer; rows are divided by max(1, max|x|) first, so that squares do not overflow.
inline void rms_factors(const RowTransform& t, const RowBlock& block, ConstRows x, RowFactors out) {
  const F32 df;
  HWY_ALIGN float inverse[kRowBlock] = {};
  HWY_ALIGN float sums[kRowBlock] = {};
  const auto one = hn::Set(df, 1.0F);
  row_maxima(x, block, inverse);
  for (size_t r = 0; r < block.rows; r += kLanes)
    hn::Store(hn::Div(one, hn::Max(hn::Load(df, inverse + r), one)), df, inverse + r);
  row_sums(
      x, block,
      [&](VecF v, size_t r) HWY_ATTR {
        const auto scaled = hn::Mul(v, hn::Set(df, inverse[r]));
        return hn::Mul(scaled, scaled);
      },
      sums);
  const auto per_channel = hn::Set(df, 1.0F / static_cast<float>(block.d));
  const auto eps = hn::Set(df, t.eps);
  for (size_t r = 0; r < block.rows; r += kLanes) {
    const auto f = hn::Load(df, inverse + r);
    const auto mean = hn::MulAdd(hn::Mul(f, f), eps, hn::Mul(hn::Load(df, sums + r), per_channel));
    hn::Store(hn::Div(f, hn::Sqrt(mean)), df, out.scale + r);
    hn::Store(per_channel, df, out.pull + r);
  }
}

HWY_INLINE void zero_padding(float* row, size_t d) {
  for (size_t h = d; h < padded(d); ++h) row[h] = 0.0F;
}

inline void subtract_means(const RowBlock& block, float* y) {
  const F32 df;
  for (size_t r = 0; r < block.rows; ++r, y += block.stride()) {
    auto sum = hn::Load(df, y);
    for (size_t h = kLanes; h < block.d; h += kLanes) sum = hn::Add(sum, hn::Load(df, y + h));
    const auto mean = hn::Mul(hn::SumOfLanes(df, sum), hn::Set(df, 1.0F / static_cast<float>(block.d)));
    for (size_t h = 0; h < block.d; h += kLanes) hn::Store(hn::Sub(hn::Load(df, y + h), mean), df, y + h);
    zero_padding(y, block.d);
  }
}

// Whether k_hat differs from the normalised y, so that the backward pass needs y apart.
HWY_INLINE bool changes_after_norm(const RowTransform& t, const RowAffine& affine) {
  return t.rotates_after_norm() || affine.gain || affine.bias;
}

// The rows to be scaled and their factors: x itself, or a copy in y when the rows are not whole vectors or change
// before the norm.
inline ConstRows measure_block(const RowTransform& t, ConstRows x, const RowBlock& block, float* y,
                               RowFactors factors) {
  const size_t stride = block.stride();
  if (block.d != stride || t.rotates_before_norm() || t.norm == QkNorm::layer) {
    const auto one = hn::Set(F32(), 1.0F);
    for (size_t r = 0; r < block.rows; ++r)
      load_row(x.data + static_cast<ptrdiff_t>(r) * x.row_stride, block.d, one, y + r * stride);
    if (t.rotates_before_norm()) rotate_rows(t, block, 1.0F, y);
    if (t.norm == QkNorm::layer) subtract_means(block, y);
    x = {y, static_cast<ptrdiff_t>(stride)};
  }
  if (t.norm == QkNorm::none) std::fill_n(factors.scale, block.rows, 1.0F);
  if (t.norm == QkNorm::lp) lp_factors(t, block, x, factors);
  if (t.norm == QkNorm::rms || t.norm == QkNorm::layer) rms_factors(t, block, x, factors);
  return x;
}

// Gain, bias and a rotation after the norm: hat from y, which may be hat.
inline void finish_block(const RowTransform& t, const RowAffine& affine, const RowBlock& block, const float* y,
                         float* hat) {
  const size_t stride = block.stride();
  if (hat != y) std::memcpy(hat, y, block.rows * stride * sizeof(float));
  for (size_t r = 0; r < block.rows && affine.gain; ++r)
    for (size_t h = 0; h < block.d; ++h) hat[r * stride + h] *= affine.gain[h];
  for (size_t r = 0; r < block.rows && affine.bias; ++r)
    for (size_t h = 0; h < block.d; ++h) hat[r * stride + h] += affine.bias[h];
  if (t.rotates_after_norm()) rotate_rows(t, block, 1.0F, hat);
}

// hat = T(x); y (which may be hat) is the row as it leaves the norm, before gain, bias and a later rotation.
inline void transform_block(const RowTransform& t, const RowAffine& affine, ConstRows x, const RowBlock& block,
                            float* y, float* hat, RowFactors factors) {
  const F32 df;
  const size_t stride = block.stride();
  const ConstRows from = measure_block(t, x, block, y, factors);
  for (size_t r = 0; r < block.rows; ++r) {
    const float* row = from.data + static_cast<ptrdiff_t>(r) * from.row_stride;
    const auto scale = hn::Set(df, factors.scale[r]);
    for (size_t h = 0; h < stride; h += kLanes)
      hn::Store(hn::Mul(hn::LoadU(df, row + h), scale), df, y + r * stride + h);
  }
  if (hat != y || changes_after_norm(t, affine)) finish_block(t, affine, block, y, hat);
}

// Sums over rows of the gradients of gain, bias and p; gain and bias are padded rows, null where not wanted.
struct RowGradSums {
  float* gain;
  float* bias;
  double* p;
};

// Splits the gradient of gain * y + bias: sums those of gain and bias, leaves that of y in g.
inline void affine_backward(const RowAffine& affine, const RowBlock& block, const float* y, float* g,
                            RowGradSums sums) {
  HWY_ALIGN float gain_part[256] = {};
  HWY_ALIGN float bias_part[256] = {};
  for (size_t r = 0; r < block.rows; ++r) {
    for (size_t h = 0; h < block.d; ++h) {
      float& value = g[r * block.stride() + h];
      gain_part[h] += value * y[r * block.stride() + h];
      bias_part[h] += value;
      if (affine.gain) value *= affine.gain[h];
    }
  }
  for (size_t h = 0; h < block.d; ++h) {
    if (sums.gain) sums.gain[h] += gain_part[h];
    if (sums.bias) sums.bias[h] += bias_part[h];
  }
}

// First channel of the largest |y|: where the gradient of the maximum norm goes. The padding is zero.
HWY_INLINE size_t first_largest(const float* y, size_t d) {
  const F32 df;
  auto most = hn::Abs(hn::Load(df, y));
  for (size_t h = kLanes; h < d; h += kLanes) most = hn::Max(most, hn::Abs(hn::Load(df, y + h)));
  most = hn::MaxOfLanes(df, most);
  for (size_t h = 0; h < d; h += kLanes) {
    const intptr_t lane = hn::FindFirstTrue(df, hn::Eq(hn::Abs(hn::Load(df, y + h)), most));
    if (lane >= 0) return h + static_cast<size_t>(lane);
  }
  return 0;  // only NaN
}

// sum_h |y_h|^p ln|y_h|
inline double log_moment(const float* y, size_t d, float p) {
  const F32 df;
  const auto tiny = hn::Set(df, 1.17549435e-38F);
  auto sum = hn::Zero(df);
  for (size_t h = 0; h < d; h += kLanes) {
    const auto size = hn::Max(hn::Abs(hn::Load(df, y + h)), tiny);  // tiny^p ln(tiny) is a zero entry's limit, 0
    sum = hn::MulAdd(PowAny{p}(size), log2_vec(size), sum);
  }
  constexpr double ln2 = 0.693147180559945309;
  return ln2 * static_cast<double>(hn::GetLane(hn::SumOfLanes(df, sum)));
}

// dx = scale * (g - pull * w * (g . y)), with w = sign(y) |y|^(p-1) made by `weight`; dx rows are whole vectors.
template <class Weight>
HWY_INLINE void norm_backward(const RowBlock& block, const float* y, RowFactors factors, const float* dots,
                              const Weight& weight, const float* g, Rows dx) {
  const F32 df;
  for (size_t r = 0; r < block.rows; ++r, dx.data += dx.row_stride, y += block.stride(), g += block.stride()) {
    const auto scale = hn::Set(df, factors.scale[r]);
    const auto pull = hn::Set(df, factors.pull[r] * dots[r]);
    for (size_t h = 0; h < block.stride(); h += kLanes) {
      const auto v = hn::NegMulAdd(weight(hn::Load(df, y + h)), pull, hn::Load(df, g + h));
      hn::StoreU(hn::Mul(v, scale), df, dx.data + h);
    }
  }
}

inline void lp_backward(const RowTransform& t, const RowBlock& block, const float* y, RowFactors factors,
                        const float* dots, float* g, Rows dx) {
  if (!std::isinf(t.p))
    return with_power(t.p - 1.0F, [&](auto power) HWY_ATTR {
      norm_backward(
          block, y, factors, dots, [&](VecF v) HWY_ATTR { return hn::CopySign(power(hn::Abs(v)), v); }, g, dx);
    });
  norm_backward(
      block, y, factors, dots, [](VecF) HWY_ATTR { return hn::Zero(F32()); }, g, dx);
  for (size_t r = 0; r < block.rows; ++r) {
    const size_t m = first_largest(y + r * block.stride(), block.d);
    const float w = std::copysign(1.0F, y[r * block.stride() + m]);
    dx.data[static_cast<ptrdiff_t>(r) * dx.row_stride + static_cast<ptrdiff_t>(m)] -=
        factors.scale[r] * factors.pull[r] * dots[r] * w;
  }
}

// dots[r] = g_r . y_r; adds to the gradient of p when it is wanted.
inline void row_dots(const RowTransform& t, const RowBlock& block, const float* y, const float* g, RowFactors factors,
                     double* p_sum, float* dots) {
  const F32 df;
  const size_t stride = block.stride();
  for (size_t r = 0; r < block.rows; ++r) {
    auto dot = hn::Zero(df);
    for (size_t h = r * stride; h < (r + 1) * stride; h += kLanes)
      dot = hn::MulAdd(hn::Load(df, g + h), hn::Load(df, y + h), dot);
    dots[r] = hn::GetLane(hn::SumOfLanes(df, dot));
  }
  if (!p_sum || t.norm != QkNorm::lp || std::isinf(t.p)) return;
  for (size_t r = 0; r < block.rows; ++r)
    *p_sum -= static_cast<double>(dots[r] * factors.pull[r] / t.p) * log_moment(y + r * stride, block.d, t.p);
}

// g holds the gradient of hat and is overwritten; dx is written to strided rows.
inline void transform_block_backward(const RowTransform& t, const RowAffine& affine, const RowBlock& block,
                                     const float* y, RowFactors factors, float* g, RowGradSums sums, Rows dx) {
  const size_t stride = block.stride();
  if (t.rotates_after_norm()) rotate_rows(t, block, -1.0F, g);
  if (affine.gain || affine.bias) affine_backward(affine, block, y, g, sums);
  const bool direct = block.d == stride && !t.rotates_before_norm() && t.norm != QkNorm::none;
  const Rows to = direct ? dx : Rows{g, static_cast<ptrdiff_t>(stride)};
  if (t.norm != QkNorm::none) {
    HWY_ALIGN float dots[kRowBlock];
    row_dots(t, block, y, g, factors, sums.p, dots);
    if (t.norm == QkNorm::lp) {
      lp_backward(t, block, y, factors, dots, g, to);
    } else {
      if (t.norm == QkNorm::layer) subtract_means(block, g);
      norm_backward(
          block, y, factors, dots, [](VecF v) HWY_ATTR { return v; }, g, to);
    }
  }
  if (direct) return;
  if (t.rotates_before_norm()) rotate_rows(t, block, -1.0F, g);
  const auto one = hn::Set(F32(), 1.0F);
  for (size_t r = 0; r < block.rows; ++r)
    store_row(g + r * stride, block.d, one, dx.data + static_cast<ptrdiff_t>(r) * dx.row_stride);
}

}  // namespace HWY_NAMESPACE
}  // namespace normlab
HWY_AFTER_NAMESPACE();

#endif
