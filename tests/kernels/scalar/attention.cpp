// Scalar twin of the attention kernels, one query row at a time in double; see attention.h for the equations.
#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/scalar/qk_rows.h"
#include "kernels/scalar/twins.h"

namespace normlab::scalar {
namespace {

// Hands out parts of the scratch as doubles; with a null base it only counts.
class Doubles {
 public:
  explicit Doubles(void* base) : base_(reinterpret_cast<uintptr_t>(base)), next_((base_ + 63) / 64 * 64) {}
  double* take(ptrdiff_t count) {
    const uintptr_t at = next_;
    next_ += static_cast<size_t>(count) * sizeof(double);
    return reinterpret_cast<double*>(at);
  }
  size_t bytes() const { return next_ - base_ + 64; }

 private:
  uintptr_t base_, next_;
};

struct Scratch {
  double *k_hat, *k_y, *k_factor;       // [tk, d] twice, [tk, 2]
  double *q_hat, *q_y, *dq;             // [d]
  double *logits, *weights, *d_logits;  // [tk]
  double *dk = nullptr, *dv = nullptr;  // [tk, d]

  Scratch(Doubles& doubles, const AttentionSpec& spec, bool backward) {
    for (double** rows : {&k_hat, &k_y}) *rows = doubles.take(spec.tk * spec.d);
    k_factor = doubles.take(2 * spec.tk);
    for (double** row : {&q_hat, &q_y, &dq}) *row = doubles.take(spec.d);
    for (double** row : {&logits, &weights, &d_logits}) *row = doubles.take(spec.tk);
    if (!backward) return;
    for (double** rows : {&dk, &dv}) *rows = doubles.take(spec.tk * spec.d);
  }
};

// The keys that a query sees.
struct Keys {
  ptrdiff_t begin, end;
};
Keys visible_keys(const AttentionSpec& spec, const AttentionUnit& unit, ptrdiff_t i) {
  if (!spec.causal) return {0, unit.kv_len};
  const ptrdiff_t own = i + spec.tk - spec.tq;
  return {std::clamp<ptrdiff_t>(spec.window > 0 ? own - spec.window + 1 : 0, 0, unit.kv_len),
          std::clamp<ptrdiff_t>(own + 1, 0, unit.kv_len)};
}

void prepare_keys(const AttentionSpec& spec, const AttentionUnit& unit, const Scratch& s) {
  for (ptrdiff_t j = 0; j < unit.kv_len; ++j) {
    const RowFactor factor = transform_row(spec.k, unit.k_affine, {j, spec.d}, unit.k + j * spec.k_row,
                                           s.k_y + j * spec.d, s.k_hat + j * spec.d);
    s.k_factor[2 * j] = factor.scale;
    s.k_factor[2 * j + 1] = factor.pull;
  }
}

RowAffine head_affine(const AttentionSpec& spec, const AttentionUnit& unit, ptrdiff_t head) {
  const ptrdiff_t offset = head * spec.q_affine_head;
  return {unit.q_affine.gain ? unit.q_affine.gain + offset : nullptr,
          unit.q_affine.bias ? unit.q_affine.bias + offset : nullptr};
}

RowFactor prepare_query(const AttentionSpec& spec, const AttentionUnit& unit, ptrdiff_t head, ptrdiff_t i,
                        const Scratch& s) {
  return transform_row(spec.q, head_affine(spec, unit, head), {i, spec.d}, unit.q + head * spec.q_head + i * spec.q_row,
                       s.q_y, s.q_hat);
}

double gain_of(const AttentionSpec& spec, const AttentionUnit& unit, ptrdiff_t head, ptrdiff_t c) {
  if (!unit.gain) return 1.0;
  return unit.gain[spec.channel_gain ? head * spec.d + c : head];
}

// What q_hat_ic is multiplied by: scale, row scale and gain.
double multiplier(const AttentionSpec& spec, const AttentionUnit& unit, ptrdiff_t head, ptrdiff_t i, ptrdiff_t c) {
  return spec.scale * (spec.row_scale ? spec.row_scale[i] : 1.0F) * gain_of(spec, unit, head, c);
}

// logits[j] = S_ij after the soft-cap.
void logits_of_row(const AttentionSpec& spec, const AttentionUnit& unit, ptrdiff_t head, ptrdiff_t i,
                   const Scratch& s) {
  const Keys keys = visible_keys(spec, unit, i);
  for (ptrdiff_t j = keys.begin; j < keys.end; ++j) {
    double sum = 0.0;
    for (ptrdiff_t c = 0; c < spec.d; ++c)
      sum += multiplier(spec, unit, head, i, c) * s.q_hat[c] * s.k_hat[j * spec.d + c];
    s.logits[j] = spec.soft_cap > 0.0F ? spec.soft_cap * std::tanh(sum / spec.soft_cap) : sum;
  }
}

// 0 for a dropped weight, else 1 / (1 - rate).
double dropout_factor(const AttentionSpec& spec, const AttentionUnit& unit, ptrdiff_t row, ptrdiff_t j) {
  if (spec.dropout == 0.0F) return 1.0;
  const uint32_t key = row_key(spec.dropout_key, unit.dropout_row + static_cast<uint32_t>(row));
  const bool kept = keep_bits(key, static_cast<uint32_t>(j)) >= drop_threshold(spec.dropout);
  return kept ? 1.0 / (1.0 - spec.dropout) : 0.0;
}

void count_row(const double* logits, ptrdiff_t keys, double lse, AttentionStats& stats) {
  double entropy = 0.0;
  const auto [least, most] = std::minmax_element(logits, logits + keys);
  for (ptrdiff_t j = 0; j < keys; ++j) {
    stats.sum_squares += logits[j] * logits[j];
    entropy += std::exp(logits[j] - lse) * (lse - logits[j]);
  }
  stats.min_logit = std::min(stats.min_logit, static_cast<float>(*least));
  stats.max_logit = std::max(stats.max_logit, static_cast<float>(*most));
  stats.n_logits += keys;
  if (keys < 2) return;
  stats.sum_entropy += entropy;
  stats.sum_relative_entropy += entropy / std::log(static_cast<double>(keys));
  stats.sum_spread += *most - *least;
  stats.min_entropy = std::min(stats.min_entropy, static_cast<float>(entropy));
  stats.n_saturated += std::exp(*most - lse) > 0.99;
  stats.n_rows += 1;
}

void forward_row(const AttentionSpec& spec, const AttentionUnit& unit, ptrdiff_t head, ptrdiff_t i, const Scratch& s) {
  float* o = unit.o + head * spec.o_head + i * spec.o_row;
  float& lse = unit.lse[head * spec.tq + i];
  const auto [begin, end] = visible_keys(spec, unit, i);
  std::fill(o, o + spec.d, 0.0F);
  lse = std::numeric_limits<float>::infinity();
  if (begin == end) return;

  prepare_query(spec, unit, head, i, s);
  logits_of_row(spec, unit, head, i, s);
  const double largest = *std::max_element(s.logits + begin, s.logits + end);
  double total = 0.0;
  for (ptrdiff_t j = begin; j < end; ++j) total += std::exp(s.logits[j] - largest);
  const double row_lse = largest + std::log(total);
  for (ptrdiff_t j = begin; j < end; ++j)
    s.weights[j] = std::exp(s.logits[j] - row_lse) * dropout_factor(spec, unit, head * spec.tq + i, j);
  for (ptrdiff_t c = 0; c < spec.d; ++c) {
    double sum = 0.0;
    for (ptrdiff_t j = begin; j < end; ++j) sum += s.weights[j] * unit.v[j * spec.v_row + c];
    o[c] = static_cast<float>(sum);
  }
  lse = static_cast<float>(row_lse);
  if (unit.stats) count_row(s.logits + begin, end - begin, row_lse, unit.stats[head]);
}

// d_logits[j] = dL/dS_ij before the soft-cap; adds to dv.
void weights_backward(const AttentionSpec& spec, const AttentionUnit& unit, const float* d_o, ptrdiff_t head,
                      ptrdiff_t i, const Scratch& s) {
  const float* o = unit.o + head * spec.o_head + i * spec.o_row;
  double delta = 0.0;
  for (ptrdiff_t c = 0; c < spec.d; ++c) delta += static_cast<double>(d_o[c]) * o[c];
  const Keys keys = visible_keys(spec, unit, i);
  for (ptrdiff_t j = keys.begin; j < keys.end; ++j) {
    const double weight = std::exp(s.logits[j] - unit.lse[head * spec.tq + i]);
    const double kept = dropout_factor(spec, unit, head * spec.tq + i, j);
    double d_weight = 0.0;
    for (ptrdiff_t c = 0; c < spec.d; ++c) {
      d_weight += kept * d_o[c] * unit.v[j * spec.v_row + c];
      s.dv[j * spec.d + c] += kept * weight * d_o[c];
    }
    const double ratio = spec.soft_cap > 0.0F ? s.logits[j] / spec.soft_cap : 0.0;
    s.d_logits[j] = weight * (d_weight - delta) * (1.0 - ratio * ratio);
  }
}

RowGrads head_grads(const AttentionSpec& spec, const RowGrads& grads, ptrdiff_t head) {
  return {grads.gain ? grads.gain + head * spec.d : nullptr, grads.bias ? grads.bias + head * spec.d : nullptr,
          grads.p};
}

void backward_row(const AttentionSpec& spec, const AttentionUnit& unit, const AttentionGrads& grads, ptrdiff_t head,
                  ptrdiff_t i, const Scratch& s) {
  const RowFactor factor = prepare_query(spec, unit, head, i, s);
  logits_of_row(spec, unit, head, i, s);
  weights_backward(spec, unit, grads.d_o + head * grads.do_head + i * grads.do_row, head, i, s);
  const Keys keys = visible_keys(spec, unit, i);
  double d_gain = 0.0;  // of a gain shared by the channels
  for (ptrdiff_t c = 0; c < spec.d; ++c) {
    const double times = multiplier(spec, unit, head, i, c);
    double sum = 0.0;
    for (ptrdiff_t j = keys.begin; j < keys.end; ++j) {
      sum += s.d_logits[j] * s.k_hat[j * spec.d + c];
      s.dk[j * spec.d + c] += s.d_logits[j] * times * s.q_hat[c];
    }
    s.dq[c] = sum * times;
    const double inner = spec.scale * (spec.row_scale ? spec.row_scale[i] : 1.0F);
    d_gain += sum * s.q_hat[c] * inner;
    if (grads.d_gain && spec.channel_gain)
      grads.d_gain[head * spec.d + c] += static_cast<float>(sum * s.q_hat[c] * inner);
  }
  if (grads.d_gain && !spec.channel_gain) grads.d_gain[head] += static_cast<float>(d_gain);
  transform_row_backward(spec.q, head_affine(spec, unit, head), {i, spec.d}, s.q_y, factor, s.dq,
                         head_grads(spec, grads.q, head));
  std::copy(s.dq, s.dq + spec.d, grads.dq + head * grads.dq_head + i * grads.dq_row);
}

void zero(float* values, ptrdiff_t count) {
  if (values) std::fill(values, values + count, 0.0F);
}

void zero_sums(const AttentionSpec& spec, const AttentionGrads& grads) {
  zero(grads.d_gain, spec.channel_gain ? spec.group * spec.d : spec.group);
  zero(grads.q.gain, spec.group * spec.d);
  zero(grads.q.bias, spec.group * spec.d);
  zero(grads.k.gain, spec.d);
  zero(grads.k.bias, spec.d);
  for (double* p : {grads.q.p, grads.k.p})
    if (p) *p = 0.0;
}

}  // namespace

size_t attention_scratch_bytes(const AttentionSpec& spec, bool backward) {
  Doubles doubles(nullptr);
  Scratch(doubles, spec, backward);
  return doubles.bytes();
}

void attention_forward(const AttentionSpec& spec, const AttentionUnit& unit, void* scratch) {
  Doubles doubles(scratch);
  const Scratch s(doubles, spec, false);
  prepare_keys(spec, unit, s);
  for (ptrdiff_t head = 0; head < spec.group; ++head) {
    if (unit.stats) unit.stats[head] = {};
    for (ptrdiff_t i = 0; i < spec.tq; ++i) forward_row(spec, unit, head, i, s);
  }
}

void attention_backward(const AttentionSpec& spec, const AttentionUnit& unit, const AttentionGrads& grads,
                        void* scratch) {
  Doubles doubles(scratch);
  const Scratch s(doubles, spec, true);
  prepare_keys(spec, unit, s);
  zero_sums(spec, grads);
  std::fill(s.dk, s.dk + spec.tk * spec.d, 0.0);
  std::fill(s.dv, s.dv + spec.tk * spec.d, 0.0);
  for (ptrdiff_t head = 0; head < spec.group; ++head)
    for (ptrdiff_t i = 0; i < spec.tq; ++i) backward_row(spec, unit, grads, head, i, s);
  for (ptrdiff_t j = 0; j < spec.tk; ++j) {
    double* dk = s.dk + j * spec.d;
    if (j < unit.kv_len)
      transform_row_backward(spec.k, unit.k_affine, {j, spec.d}, s.k_y + j * spec.d,
                             {s.k_factor[2 * j], s.k_factor[2 * j + 1]}, dk, grads.k);
    std::copy(dk, dk + spec.d, grads.dk + j * grads.dk_row);
    std::copy(s.dv + j * spec.d, s.dv + (j + 1) * spec.d, grads.dv + j * grads.dv_row);
  }
}

}  // namespace normlab::scalar
