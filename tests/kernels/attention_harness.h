// Runs an attention case on the kernels and holds the result against the double reference.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "kernels/attention_cases.h"
#include "kernels/attention_reference.h"
#include "kernels/scalar/twins.h"
#include "normlab/base/text.h"
#include "normlab/kernels/attention.h"

namespace normlab::testing {

constexpr float kUntouched = 12345.0F;  // fills the gaps between rows

inline size_t count(ptrdiff_t n) { return static_cast<size_t>(n); }

inline float normal(uint64_t key, uint64_t index) {
  const double u = draw_uniform(key, 2 * index) + 0x1p-54, w = draw_uniform(key, 2 * index + 1);
  return static_cast<float>(std::sqrt(-2.0 * std::log(u)) * std::cos(6.283185307179586 * w));
}

inline std::vector<float> normals(uint64_t key, ptrdiff_t n, float scale = 1.0F, float offset = 0.0F) {
  std::vector<float> x(count(n));
  for (size_t i = 0; i < x.size(); ++i) x[i] = offset + scale * normal(key, i);
  return x;
}

// Makes rows of q and k hard: the third and last row of every eight, so that rows of both kinds meet.
inline void harden(Values values, ptrdiff_t d, std::vector<float>& x) {
  const size_t width = count(d);
  for (size_t i = 0; i < x.size(); ++i) {
    const size_t row = i / width, channel = i % width;
    if (row % 8 != 2 && row % 8 != 7) continue;
    if (values == Values::zero_rows) x[i] = 0.0F;
    if (values == Values::single_entries) x[i] = channel == row % width ? x[i] : 0.0F;
    if (values == Values::tiny) x[i] *= 1e-40F;
    if (values == Values::huge) x[i] *= 1e30F;
    if (values == Values::mixed) x[i] *= channel % 3 == 0 ? 1e30F : channel % 3 == 1 ? 1.0F : 1e-30F;
  }
}

inline AttentionInputs make_inputs(const AttentionCase& c) {
  AttentionInputs in;
  in.q = normals(1, c.group * c.tq * c.d);
  in.k = normals(2, c.tk * c.d);
  in.v = normals(3, c.tk * c.d);
  in.d_o = normals(4, c.group * c.tq * c.d);
  harden(c.values, c.d, in.q);
  harden(c.values, c.d, in.k);
  if (c.gain == Gain::scalar) in.gain = normals(5, c.group, 0.5F, 8.0F);
  if (c.gain == Gain::channel) in.gain = normals(5, c.group * c.d, 0.3F, 2.0F);
  if (c.row_scale) in.row_scale = normals(6, c.tq, 0.2F, 1.0F);
  if (c.affine) {
    in.q_gain = normals(7, c.group * c.d, 0.3F, 1.0F);
    in.q_bias = normals(8, c.group * c.d, 0.3F);
    in.k_gain = normals(9, c.d, 0.3F, 1.0F);
    in.k_bias = normals(10, c.d, 0.3F);
  }
  const ptrdiff_t positions = std::max(c.tq, c.tk);
  for (ptrdiff_t t = 0; t < positions; ++t)
    for (ptrdiff_t i = 0; i < c.d / 2; ++i) {
      const double angle =
          static_cast<double>(t) * std::pow(10000.0, -2.0 * static_cast<double>(i) / static_cast<double>(c.d));
      in.cos.push_back(static_cast<float>(std::cos(angle)));
      in.sin.push_back(static_cast<float>(std::sin(angle)));
    }
  in.scale = c.norm == QkNorm::lp ? 1.0F : 1.0F / std::sqrt(static_cast<float>(c.d));
  in.eps = c.eps > 0.0F ? c.eps : c.norm == QkNorm::lp ? 1e-12F : 1e-5F;
  in.p = c.p;
  return in;
}

// Rows spread out with a gap of `gap` floats after each, as they lie in a projection's output.
inline std::vector<float> spread(const std::vector<float>& x, ptrdiff_t d, ptrdiff_t gap) {
  std::vector<float> out(x.size() / count(d) * count(d + gap), kUntouched);
  for (size_t i = 0; i < x.size(); ++i) out[i / count(d) * count(d + gap) + i % count(d)] = x[i];
  return out;
}
inline std::vector<float> gather(const std::vector<float>& x, ptrdiff_t d, ptrdiff_t gap) {
  std::vector<float> out;
  for (size_t i = 0; i < x.size(); ++i) {
    if (i % count(d + gap) < count(d)) {
      out.push_back(x[i]);
    } else {
      EXPECT_EQ(x[i], kUntouched) << "written between rows at " << i;
    }
  }
  return out;
}

inline AttentionSpec make_spec(const AttentionCase& c, const AttentionInputs& in, ptrdiff_t row) {
  AttentionSpec spec{.tq = c.tq, .tk = c.tk, .d = c.d, .group = c.group, .causal = c.causal, .scale = in.scale};
  spec.window = c.window;
  spec.soft_cap = c.soft_cap;
  spec.channel_gain = c.gain == Gain::channel;
  spec.k = {.norm = c.norm,
            .p = c.p,
            .eps = in.eps,
            .order = c.order,
            .pairing = c.pairing,
            .cos = c.rope ? in.cos.data() : nullptr,
            .sin = in.sin.data()};
  spec.q = spec.k;
  const ptrdiff_t offset = std::max<ptrdiff_t>(0, c.tk - c.tq) * (c.d / 2);
  if (c.rope) spec.q.cos += offset;
  spec.q.sin += offset;
  if (c.row_scale) spec.row_scale = in.row_scale.data();
  spec.dropout = c.dropout;
  spec.dropout_key = dropout_key(99);
  spec.q_row = spec.k_row = spec.v_row = spec.o_row = row;
  spec.q_head = spec.o_head = c.tq * row;
  spec.q_affine_head = c.d;
  return spec;
}

struct Run {
  AttentionResult<float> result;
  std::vector<AttentionStats> stats;
};

using Bytes = size_t (*)(const AttentionSpec&, bool);
using Forward = void (*)(const AttentionSpec&, const AttentionUnit&, void*);
using Backward = void (*)(const AttentionSpec&, const AttentionUnit&, const AttentionGrads&, void*);
struct Kernels {
  Bytes bytes;
  Forward forward;
  Backward backward;
};
constexpr Kernels kBest{attention_scratch_bytes, attention_forward, attention_backward};
constexpr Kernels kTwin{scalar::attention_scratch_bytes, scalar::attention_forward, scalar::attention_backward};

// Forward and backward of one case, on strided copies of the inputs and with exactly the scratch that is asked for.
inline Run run_kernels(const Kernels& kernels, const AttentionCase& c, const AttentionInputs& in,
                       bool with_stats = true) {
  const ptrdiff_t gap = 5, row = c.d + gap;
  const auto q = spread(in.q, c.d, gap), k = spread(in.k, c.d, gap), v = spread(in.v, c.d, gap),
             d_o = spread(in.d_o, c.d, gap);
  const AttentionSpec spec = make_spec(c, in, row);
  std::vector<float> o(q.size(), kUntouched), dq(o), dk(k.size(), kUntouched), dv(dk);
  Run run;
  AttentionResult<float>& r = run.result;
  r.lse.resize(count(c.group * c.tq));
  r.d_gain.resize(in.gain.size());
  r.q_gain.resize(in.q_gain.size());
  r.q_bias.resize(in.q_bias.size());
  r.k_gain.resize(in.k_gain.size());
  r.k_bias.resize(in.k_bias.size());
  run.stats.resize(count(c.group));
  AttentionUnit unit{.q = q.data(), .k = k.data(), .v = v.data()};
  if (c.gain != Gain::none) unit.gain = in.gain.data();
  if (c.affine) unit.q_affine = {in.q_gain.data(), in.q_bias.data()};
  if (c.affine) unit.k_affine = {in.k_gain.data(), in.k_bias.data()};
  unit.kv_len = c.kv_len < 0 ? c.tk : c.kv_len;
  unit.dropout_row = 1000;
  unit.o = o.data();
  unit.lse = r.lse.data();
  if (with_stats) unit.stats = run.stats.data();
  double dp[2];
  AttentionGrads grads{.d_o = d_o.data(),
                       .do_row = row,
                       .do_head = c.tq * row,
                       .dq = dq.data(),
                       .dk = dk.data(),
                       .dv = dv.data(),
                       .dq_row = row,
                       .dq_head = c.tq * row,
                       .dk_row = row,
                       .dv_row = row};
  if (c.gain != Gain::none) grads.d_gain = r.d_gain.data();
  if (c.affine) grads.q = {r.q_gain.data(), r.q_bias.data(), nullptr};
  if (c.affine) grads.k = {r.k_gain.data(), r.k_bias.data(), nullptr};
  grads.q.p = &dp[0];
  grads.k.p = &dp[1];

  std::vector<char> scratch(kernels.bytes(spec, false), char(-1));  // NaN: what is not written must not be used
  kernels.forward(spec, unit, scratch.data());
  scratch.assign(kernels.bytes(spec, true), char(-1));
  kernels.backward(spec, unit, grads, scratch.data());
  r.o = gather(o, c.d, gap);
  r.dq = gather(dq, c.d, gap);
  r.dk = gather(dk, c.d, gap);
  r.dv = gather(dv, c.d, gap);
  r.dp = {static_cast<float>(dp[0]), static_cast<float>(dp[1])};
  return run;
}

struct Deviation {
  double worst = 0.0, rms = 0.0;
};
template <class T>
Deviation deviation(const std::vector<T>& got, const std::vector<double>& truth) {
  Deviation result;
  for (size_t i = 0; i < truth.size(); ++i) {
    const double value = static_cast<double>(got[i]);
    if (std::isinf(truth[i]) && std::isinf(value)) continue;
    const double difference = std::abs(value - truth[i]);
    if (std::isnan(difference)) return {std::numeric_limits<double>::infinity(), difference};
    result.worst = std::max(result.worst, difference);
    result.rms += difference * difference;
  }
  result.rms = std::sqrt(result.rms / static_cast<double>(truth.size()));
  return result;
}

inline double largest(const std::vector<double>& x) {
  double most = 0.0;
  for (double value : x)
    if (std::isfinite(value)) most = std::max(most, std::abs(value));
  return most;
}

inline std::string label(const AttentionCase& c) {
  return concat(c.name, ": tq ", c.tq, " tk ", c.tk, " d ", c.d, " norm ", static_cast<int>(c.norm), " p ",
                static_cast<double>(c.p), " values ", static_cast<int>(c.values), " rope ",
                c.rope ? static_cast<int>(c.order) : -1);
}

// Truth, composite and magnitudes of a case, computed once for all instruction sets.
struct Expected {
  AttentionCase c;
  AttentionInputs in;
  AttentionResult<double> truth, magnitude;
  AttentionResult<float> composite;
};
inline const std::vector<Expected>& expectations() {
  static const std::vector<Expected> all = [] {
    std::vector<Expected> made;
    for (const AttentionCase& c : attention_cases()) {
      Expected e{.c = c, .in = make_inputs(c), .truth = {}, .magnitude = {}, .composite = {}};
      e.truth = AttentionReference<double>(c, e.in).run();
      e.magnitude = AttentionReference<double, true>(c, e.in).run();
      e.composite = AttentionReference<float>(c, e.in).run();
      made.push_back(std::move(e));
    }
    return made;
  }();
  return all;
}

inline void expect_close(const Expected& e, const AttentionResult<float>& got) {
  const auto truth = e.truth.tensors(), magnitude = e.magnitude.tensors();
  const auto composite = e.composite.tensors(), mine = got.tensors();
  for (size_t t = 0; t < truth.size(); ++t) {
    ASSERT_EQ(mine[t].second->size(), truth[t].second->size()) << truth[t].first;
    if (truth[t].second->empty()) continue;
    const double times = t < 2 ? 2.0 : 3.0;
    const double ulps = 0x1p-24 * largest(*magnitude[t].second);
    const Deviation plain = deviation(*composite[t].second, *truth[t].second);
    const Deviation fused = deviation(*mine[t].second, *truth[t].second);
    EXPECT_LE(fused.rms, times * plain.rms + ulps) << label(e.c) << " tensor " << truth[t].first;
    EXPECT_LE(fused.worst, 2.0 * times * plain.worst + 4.0 * ulps) << label(e.c) << " tensor " << truth[t].first;
  }
}

}  // namespace normlab::testing
