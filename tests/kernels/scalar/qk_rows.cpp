// Scalar twin of the row transforms; see qk_rows.h for the equations.
#include "kernels/scalar/qk_rows.h"

#include <algorithm>
#include <cmath>

namespace normlab::scalar {
namespace {

void rotate(const RowTransform& t, RowShape shape, double direction, double* row) {
  const ptrdiff_t half = shape.d / 2;
  const bool paired = t.pairing == RopePairing::interleaved;
  for (ptrdiff_t i = 0; i < half; ++i) {
    const double c = t.cos[shape.position * half + i];
    const double s = direction * t.sin[shape.position * half + i];
    double& a = row[paired ? 2 * i : i];
    double& b = row[paired ? 2 * i + 1 : half + i];
    const double x = a * c - b * s;
    b = a * s + b * c;
    a = x;
  }
}

RowFactor lp_factor(const RowTransform& t, ptrdiff_t d, const double* x) {
  double largest = 0.0;
  for (ptrdiff_t h = 0; h < d; ++h) largest = std::max(largest, std::abs(x[h]));
  double norm = largest;
  if (!std::isinf(t.p) && largest > 0.0) {
    double sum = 0.0;
    for (ptrdiff_t h = 0; h < d; ++h) sum += std::pow(std::abs(x[h]) / largest, t.p);
    norm = largest * std::pow(sum, 1.0 / t.p);
  }
  const bool clamped = norm <= t.eps;
  return {1.0 / (clamped ? t.eps : norm), clamped ? 0.0 : 1.0};
}

double mean(ptrdiff_t d, const double* x) {
  double sum = 0.0;
  for (ptrdiff_t h = 0; h < d; ++h) sum += x[h];
  return sum / static_cast<double>(d);
}

RowFactor rms_factor(const RowTransform& t, ptrdiff_t d, const double* x) {
  double sum = 0.0;
  for (ptrdiff_t h = 0; h < d; ++h) sum += x[h] * x[h];
  const double count = static_cast<double>(d);
  return {1.0 / std::sqrt(sum / count + t.eps), 1.0 / count};
}

// w of qk_rows.h: d||x||/dx at y = x / ||x||, up to the sign at p = inf, where `first` marks the first largest.
double lp_weight(double y, float p, bool first) {
  if (y == 0.0) return 0.0;
  if (std::isinf(p)) return first ? std::copysign(1.0, y) : 0.0;
  return std::copysign(std::pow(std::abs(y), p - 1.0), y);
}

void lp_backward(const RowTransform& t, ptrdiff_t d, const double* y, RowFactor factor, double* g, double* p_sum) {
  double dot = 0.0, moment = 0.0;
  ptrdiff_t first = 0;
  for (ptrdiff_t h = 0; h < d; ++h) {
    const double size = std::abs(y[h]);
    dot += g[h] * y[h];
    if (size > 0.0 && !std::isinf(t.p)) moment += std::pow(size, t.p) * std::log(size);
    if (size > std::abs(y[first])) first = h;
  }
  if (p_sum && !std::isinf(t.p)) *p_sum -= factor.pull * dot / t.p * moment;
  for (ptrdiff_t h = 0; h < d; ++h) g[h] = factor.scale * (g[h] - factor.pull * lp_weight(y[h], t.p, h == first) * dot);
}

void rms_backward(ptrdiff_t d, const double* y, RowFactor factor, double* g) {
  double dot = 0.0;
  for (ptrdiff_t h = 0; h < d; ++h) dot += g[h] * y[h];
  for (ptrdiff_t h = 0; h < d; ++h) g[h] = factor.scale * (g[h] - factor.pull * y[h] * dot);
}

}  // namespace

RowFactor transform_row(const RowTransform& t, const RowAffine& affine, RowShape shape, const float* x, double* y,
                        double* hat) {
  const ptrdiff_t d = shape.d;
  std::copy(x, x + d, y);
  if (t.rotates_before_norm()) rotate(t, shape, 1.0, y);
  RowFactor factor;
  if (t.norm == QkNorm::layer) {
    const double centre = mean(d, y);
    for (ptrdiff_t h = 0; h < d; ++h) y[h] -= centre;
  }
  if (t.norm != QkNorm::none) factor = t.norm == QkNorm::lp ? lp_factor(t, d, y) : rms_factor(t, d, y);
  for (ptrdiff_t h = 0; h < d; ++h) {
    y[h] *= factor.scale;
    hat[h] = y[h] * (affine.gain ? affine.gain[h] : 1.0F) + (affine.bias ? affine.bias[h] : 0.0F);
  }
  if (t.rotates_after_norm()) rotate(t, shape, 1.0, hat);
  return factor;
}

void transform_row_backward(const RowTransform& t, const RowAffine& affine, RowShape shape, const double* y,
                            RowFactor factor, double* g, const RowGrads& sums) {
  const ptrdiff_t d = shape.d;
  if (t.rotates_after_norm()) rotate(t, shape, -1.0, g);
  for (ptrdiff_t h = 0; h < d; ++h) {
    if (sums.gain) sums.gain[h] += static_cast<float>(g[h] * y[h]);
    if (sums.bias) sums.bias[h] += static_cast<float>(g[h]);
    if (affine.gain) g[h] *= affine.gain[h];
  }
  if (t.norm == QkNorm::lp) lp_backward(t, d, y, factor, g, sums.p);
  if (t.norm == QkNorm::layer) {
    const double centre = mean(d, g);  // before the pull: y has no mean, so their order does not matter
    for (ptrdiff_t h = 0; h < d; ++h) g[h] -= centre;
  }
  if (t.norm == QkNorm::rms || t.norm == QkNorm::layer) rms_backward(d, y, factor, g);
  if (t.rotates_before_norm()) rotate(t, shape, -1.0, g);
}

void transform_rows(const RowTransform& t, const RowAffine& affine, ConstRows x, ptrdiff_t rows, ptrdiff_t d, Rows y) {
  double norm[256], hat[256];
  for (ptrdiff_t r = 0; r < rows; ++r) {
    transform_row(t, affine, {r, d}, x.data + r * x.row_stride, norm, hat);
    std::copy(hat, hat + d, y.data + r * y.row_stride);
  }
}

}  // namespace normlab::scalar
