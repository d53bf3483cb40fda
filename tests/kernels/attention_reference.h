// Plain attention with materialised matrices, in any floating type: in double the truth of the kernel tests, in float
// the composite whose rounding the kernels are measured against.
#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

#include "kernels/attention_cases.h"
#include "normlab/base/random.h"

namespace normlab::testing {

// Inputs of one unit with packed strides, all values representable in float.
struct AttentionInputs {
  std::vector<float> q, k, v, d_o;                    // [group, tq, d], [tk, d], [tk, d], [group, tq, d]
  std::vector<float> gain, row_scale;                 // [group] or [group, d], [tq]
  std::vector<float> q_gain, q_bias, k_gain, k_bias;  // [group, d], [d]
  std::vector<float> cos, sin;                        // [tk, d / 2]; queries take the last tq rows
  float scale = 1.0F, eps = 1e-12F, p = 2.0F;
};

// Gradients and outputs; `tensors` lists them for comparison.
template <class T>
struct AttentionResult {
  std::vector<T> o, lse, dq, dk, dv, d_gain, q_gain, q_bias, k_gain, k_bias, dp;  // dp: of q and of k
  std::vector<std::pair<const char*, const std::vector<T>*>> tensors() const {
    return {{"o", &o},           {"lse", &lse},       {"dq", &dq},         {"dk", &dk},
            {"dv", &dv},         {"d_gain", &d_gain}, {"q_gain", &q_gain}, {"q_bias", &q_bias},
            {"k_gain", &k_gain}, {"k_bias", &k_bias}, {"dp", &dp}};
  }
};

// With kMagnitude every difference becomes a sum of absolute values in the backward pass: how large a rounding error
// may be where the exact gradient cancels.
template <class T, bool kMagnitude = false>
class AttentionReference {
 public:
  AttentionReference(const AttentionCase& c, const AttentionInputs& in) : c_(c), in_(in) {}

  AttentionResult<T> run() {
    const auto kv = static_cast<size_t>(keys()), d = size(c_.d);
    out_.o.assign(size(c_.group * c_.tq) * d, 0);
    out_.lse.assign(size(c_.group * c_.tq), std::numeric_limits<T>::infinity());
    out_.dq = out_.o;
    out_.dk.assign(size(c_.tk) * d, 0);
    out_.dv = out_.dk;
    out_.d_gain.assign(in_.gain.size(), 0);
    out_.q_gain.assign(in_.q_gain.size(), 0);
    out_.q_bias.assign(in_.q_bias.size(), 0);
    out_.k_gain.assign(in_.k_gain.size(), 0);
    out_.k_bias.assign(in_.k_bias.size(), 0);
    out_.dp.assign(2, 0);
    std::vector<Row> k(kv);
    std::vector<std::vector<T>> d_k_hat(kv, std::vector<T>(d, 0));
    for (size_t j = 0; j < kv; ++j) k[j] = transform(&in_.k[j * d], in_.k_gain.data(), in_.k_bias.data(), j);
    for (size_t h = 0; h < size(c_.group); ++h)
      for (size_t i = 0; i < size(c_.tq); ++i) query_row(h, i, k, d_k_hat);
    for (size_t j = 0; j < kv; ++j) {
      transform_backward(k[j], d_k_hat[j], j, in_.k_gain.data(), &out_.k_gain, &out_.k_bias, 0, out_.dp[1]);
      std::copy(d_k_hat[j].begin(), d_k_hat[j].end(), out_.dk.begin() + static_cast<ptrdiff_t>(j * d));
    }
    return out_;
  }

 private:
  struct Row {
    std::vector<T> y, hat;
    T scale = 1, pull = 0;
  };

  static size_t size(ptrdiff_t n) { return static_cast<size_t>(n); }
  static T abs_if(T x) { return kMagnitude ? std::abs(x) : x; }
  static T minus(T a, T b) { return kMagnitude ? std::abs(a) + std::abs(b) : a - b; }
  ptrdiff_t keys() const { return c_.kv_len < 0 ? c_.tk : c_.kv_len; }

  // A sum in 16 interleaved parts, as a vectorised reduction does it.
  template <class Term>
  static T sum(size_t n, const Term& term) {
    T part[16] = {};
    for (size_t i = 0; i < n; ++i) part[i % 16] += term(i);
    for (size_t step = 8; step > 0; step /= 2)
      for (size_t i = 0; i < step; ++i) part[i] += part[i + step];
    return part[0];
  }

  // A sum in order, as matrix products accumulate.
  template <class Term>
  static T product(size_t n, const Term& term) {
    T total = 0;
    for (size_t i = 0; i < n; ++i) total += term(i);
    return total;
  }

  void rotate(std::vector<T>& x, size_t position, T direction) const {
    const size_t half = x.size() / 2;
    for (size_t i = 0; i < half; ++i) {
      const T cos = abs_if(in_.cos[position * half + i]);
      const T sin = abs_if(direction * in_.sin[position * half + i]);
      T& a = x[c_.pairing == RopePairing::interleaved ? 2 * i : i];
      T& b = x[c_.pairing == RopePairing::interleaved ? 2 * i + 1 : half + i];
      const T rotated = direction < 0 ? minus(a * cos, b * sin) : a * cos - b * sin;
      b = a * sin + b * cos;
      a = rotated;
    }
  }

  Row transform(const float* x, const float* gain, const float* bias, size_t position) const {
    const size_t d = size(c_.d);
    const T count = static_cast<T>(d), eps = in_.eps, p = in_.p;
    Row row;
    row.y.assign(x, x + d);
    // The forward rotation is never a magnitude.
    if (c_.rope && c_.order == QkOrder::after_rope) AttentionReference<T>(c_, in_).rotate_forward(row.y, position);
    if (c_.norm == QkNorm::layer) {
      const T mean = sum(d, [&](size_t h) { return row.y[h]; }) / count;
      for (T& value : row.y) value -= mean;
    }
    T largest = 0;
    for (T value : row.y) largest = std::max(largest, std::abs(value));
    if (c_.norm == QkNorm::lp) {
      T norm = largest;
      if (!std::isinf(p) && largest > 0)
        norm *= std::pow(sum(d, [&](size_t h) { return std::pow(std::abs(row.y[h]) / largest, p); }), 1 / p);
      row.pull = norm > eps;
      row.scale = 1 / std::max(norm, eps);
    } else if (c_.norm != QkNorm::none) {
      const T unit = std::max<T>(1, largest);  // squares must not overflow in float
      const T square = sum(d, [&](size_t h) { return row.y[h] / unit * (row.y[h] / unit); });
      row.pull = 1 / count;
      row.scale = 1 / (unit * std::sqrt(square / count + eps / unit / unit));
    }
    for (T& value : row.y) value *= row.scale;
    row.hat = row.y;
    for (size_t h = 0; h < d && c_.affine; ++h) row.hat[h] = row.y[h] * gain[h] + bias[h];
    if (c_.rope && c_.order == QkOrder::before_rope) AttentionReference<T>(c_, in_).rotate_forward(row.hat, position);
    return row;
  }

  void transform_backward(const Row& row, std::vector<T>& g, size_t position, const float* gain, std::vector<T>* d_gain,
                          std::vector<T>* d_bias, size_t offset, T& dp) const {
    const size_t d = size(c_.d);
    const T p = in_.p;
    if (c_.rope && c_.order == QkOrder::before_rope) rotate(g, position, -1);
    for (size_t h = 0; h < d && c_.affine; ++h) {
      (*d_gain)[offset + h] += abs_if(g[h] * row.y[h]);
      (*d_bias)[offset + h] += g[h];
      g[h] *= abs_if(gain[h]);
    }
    if (c_.norm != QkNorm::none) {
      const T dot = sum(d, [&](size_t h) { return abs_if(g[h] * row.y[h]); });
      const T mean = sum(d, [&](size_t h) { return g[h]; }) / static_cast<T>(d);
      size_t first = 0;
      for (size_t h = 0; h < d; ++h)
        if (std::abs(row.y[h]) > std::abs(row.y[first])) first = h;
      T moment = 0;
      for (size_t h = 0; h < d; ++h) {
        const T y = row.y[h], size_y = std::abs(y);
        T w = y;
        if (c_.norm == QkNorm::lp) {
          w = std::isinf(p) ? T(h == first) : y == 0 ? 0 : std::pow(size_y, p - 1);
          w = std::copysign(w, y);
          if (!std::isinf(p) && y != 0) moment += std::pow(size_y, p) * std::log(size_y);
        }
        const T centred = c_.norm == QkNorm::layer ? minus(g[h], mean) : g[h];
        g[h] = row.scale * minus(centred, row.pull * w * dot);
      }
      if (c_.norm == QkNorm::lp) dp += abs_if(-row.pull * dot * moment / p);
    }
    if (c_.rope && c_.order == QkOrder::after_rope) rotate(g, position, -1);
  }

  void query_row(size_t h, size_t i, const std::vector<Row>& k, std::vector<std::vector<T>>& d_k_hat) {
    const size_t d = size(c_.d), tq = size(c_.tq);
    const ptrdiff_t limit = c_.causal ? static_cast<ptrdiff_t>(i) + c_.tk - c_.tq + 1 : keys();
    const size_t n = size(std::clamp<ptrdiff_t>(limit, 0, keys()));
    const ptrdiff_t oldest = c_.causal && c_.window > 0 ? limit - c_.window : 0;
    const size_t first = size(std::clamp<ptrdiff_t>(oldest, 0, keys()));
    if (first >= n) return;
    const size_t position = size(c_.tk) >= tq ? i + size(c_.tk) - tq : i;
    const float *gain_row = in_.q_gain.data() + (c_.affine ? h * d : 0),
                *bias_row = in_.q_bias.data() + (c_.affine ? h * d : 0);
    const Row q = transform(&in_.q[(h * tq + i) * d], gain_row, bias_row, position);
    const auto gain_index = [&](size_t ch) { return in_.gain.size() > size(c_.group) ? h * d + ch : h; };
    const auto gain = [&](size_t ch) { return c_.gain == Gain::none ? T(1) : T(in_.gain[gain_index(ch)]); };
    const T outer = in_.scale * (c_.row_scale ? in_.row_scale[i] : 1.0F);
    std::vector<T> times(d), s(n), a(n), keep(n, 1), dp(n), ds(n);
    for (size_t ch = 0; ch < d; ++ch) times[ch] = outer * gain(ch);

    for (size_t j = first; j < n; ++j) {
      s[j] = product(d, [&](size_t ch) { return times[ch] * q.hat[ch] * k[j].hat[ch]; });
      if (c_.soft_cap > 0) s[j] = c_.soft_cap * std::tanh(s[j] / c_.soft_cap);
      if (c_.dropout > 0) {
        const uint32_t key = row_key(dropout_key(99), static_cast<uint32_t>(1000 + h * tq + i));
        keep[j] = keep_bits(key, static_cast<uint32_t>(j)) >= drop_threshold(c_.dropout) ? 1 / (1 - T(c_.dropout)) : 0;
      }
    }
    const T largest = *std::max_element(s.begin() + static_cast<ptrdiff_t>(first), s.end());
    const T total = sum(n - first, [&](size_t j) { return std::exp(s[first + j] - largest); });
    for (size_t j = first; j < n; ++j) a[j] = std::exp(s[j] - largest) / total;
    out_.lse[h * tq + i] = largest + std::log(total);
    const float *v = in_.v.data(), *d_o = &in_.d_o[(h * tq + i) * d];
    for (size_t ch = 0; ch < d; ++ch)
      out_.o[(h * tq + i) * d + ch] = product(n, [&](size_t j) { return abs_if(a[j] * keep[j] * v[j * d + ch]); });

    for (size_t j = first; j < n; ++j) {
      dp[j] = keep[j] * product(d, [&](size_t ch) { return abs_if(T(d_o[ch]) * v[j * d + ch]); });
      for (size_t ch = 0; ch < d; ++ch) out_.dv[j * d + ch] += abs_if(a[j] * keep[j] * d_o[ch]);
    }
    const T delta = sum(n - first, [&](size_t j) { return a[first + j] * dp[first + j]; });
    std::vector<T> g(d);
    for (size_t j = first; j < n; ++j) {
      const T ratio = c_.soft_cap > 0 ? s[j] / c_.soft_cap : T(0);
      ds[j] = a[j] * minus(dp[j], delta) * (1 - ratio * ratio);
      for (size_t ch = 0; ch < d; ++ch) d_k_hat[j][ch] += abs_if(ds[j] * times[ch] * q.hat[ch]);
    }
    for (size_t ch = 0; ch < d; ++ch) {
      const T raw = product(n, [&](size_t j) { return abs_if(ds[j] * k[j].hat[ch]); });
      g[ch] = raw * abs_if(times[ch]);
      if (c_.gain != Gain::none) out_.d_gain[gain_index(ch)] += abs_if(raw * q.hat[ch] * outer);
    }
    transform_backward(q, g, position, gain_row, &out_.q_gain, &out_.q_bias, c_.affine ? h * d : 0, out_.dp[0]);
    std::copy(g.begin(), g.end(), out_.dq.begin() + static_cast<ptrdiff_t>((h * tq + i) * d));
  }

  template <class, bool>
  friend class AttentionReference;
  void rotate_forward(std::vector<T>& x, size_t position) const { rotate(x, position, 1); }

  const AttentionCase& c_;
  const AttentionInputs& in_;
  AttentionResult<T> out_;
};

}  // namespace normlab::testing
