// One table of attention cases: it drives the forward, gradient and instruction-set tests and the benchmark.
#pragma once

#include <limits>
#include <string>
#include <vector>

#include "normlab/kernels/attention.h"

namespace normlab::testing {

enum class Gain { none, scalar, channel };
enum class Values { normal, zero_rows, single_entries, tiny, huge, mixed };

struct AttentionCase {
  std::string name;
  ptrdiff_t tq = 33, tk = 33, d = 16, group = 1;
  bool causal = true;
  ptrdiff_t window = 0;
  ptrdiff_t kv_len = -1;  // -1: tk
  QkNorm norm = QkNorm::lp;
  float p = 2.0F;
  float eps = 0.0F;  // 0: 1e-12 for lp, 1e-5 for the others
  bool rope = false;
  QkOrder order = QkOrder::before_rope;
  RopePairing pairing = RopePairing::interleaved;
  bool affine = false;
  Gain gain = Gain::scalar;
  float soft_cap = 0.0F;
  float dropout = 0.0F;
  bool row_scale = false;
  Values values = Values::normal;
};

inline std::vector<AttentionCase> attention_cases() {
  constexpr float inf = std::numeric_limits<float>::infinity();
  std::vector<AttentionCase> cases;
  for (ptrdiff_t t : {1, 7, 8, 31, 33, 64, 127, 257}) cases.push_back({.name = "size", .tq = t, .tk = t, .d = 32});
  for (ptrdiff_t d : {2, 8, 10, 15, 24, 40, 48, 64, 80, 96, 128, 256})
    cases.push_back({.name = "head size", .tq = 70, .tk = 70, .d = d});
  for (float p : {0.5F, 1.0F, 1.5F, 2.0F, 2.5F, 3.0F, 3.14159265F, 3.5F, 4.0F, 8.0F, inf})
    for (Values values : {Values::normal, Values::zero_rows, Values::single_entries, Values::tiny, Values::huge})
      cases.push_back({.name = "norm", .d = 64, .p = p, .values = values});
  for (float p : {1.0F, 2.0F, 3.14159265F, inf})  // about half of the rows are shorter than eps
    cases.push_back({.name = "clamped", .d = 16, .p = p, .eps = p == 1.0F ? 12.5F : p == 2.0F ? 4.0F : 2.2F});
  cases.push_back({.name = "large p", .p = 64.0F, .values = Values::mixed});
  for (QkNorm norm : {QkNorm::none, QkNorm::rms, QkNorm::layer})
    for (bool affine : {false, true})
      cases.push_back({.name = "other norms", .tq = 65, .tk = 65, .norm = norm, .affine = affine, .gain = Gain::none});
  cases.push_back({.name = "other norms", .norm = QkNorm::rms, .values = Values::huge});
  cases.push_back({.name = "no mask", .tq = 100, .tk = 100, .causal = false});
  cases.push_back({.name = "padding", .tq = 64, .tk = 130, .causal = false, .kv_len = 101});
  cases.push_back({.name = "padding and causal", .tq = 130, .tk = 130, .kv_len = 77});
  cases.push_back({.name = "no keys", .tq = 9, .tk = 9, .kv_len = 0});
  cases.push_back({.name = "cross", .tq = 20, .tk = 150, .causal = false});
  cases.push_back({.name = "cache", .tq = 3, .tk = 200});
  cases.push_back({.name = "odd cache", .tq = 100, .tk = 131});
  for (ptrdiff_t window : {7, 64, 100, 300})  // the last one is larger than the sequence
    cases.push_back({.name = "window", .tq = 200, .tk = 200, .window = window});
  // Small logits: of a single key, A is 1 without rounding in plain float, and exp(S - lse) as exact as S is.
  cases.push_back({.name = "window of one key", .tq = 200, .tk = 200, .window = 1, .gain = Gain::none});
  cases.push_back({.name = "window of a cache", .tq = 70, .tk = 201, .group = 2, .window = 33});
  cases.push_back({.name = "window and padding", .tq = 140, .tk = 140, .window = 9, .kv_len = 67});
  cases.push_back({.name = "one query", .tq = 1, .tk = 257, .group = 4});
  cases.push_back({.name = "masked rows", .tq = 150, .tk = 40});
  cases.push_back({.name = "grouped", .tq = 97, .tk = 97, .group = 3, .affine = true, .gain = Gain::channel});
  for (RopePairing pairing : {RopePairing::interleaved, RopePairing::half})
    for (QkOrder order : {QkOrder::after_rope, QkOrder::before_rope})
      for (ptrdiff_t d : {12, 64})
        cases.push_back(
            {.name = "rope", .tq = 40, .tk = 72, .d = d, .p = 3.0F, .rope = true, .order = order, .pairing = pairing});
  cases.push_back({.name = "rope and gains", .norm = QkNorm::rms, .rope = true, .affine = true});
  for (Gain gain : {Gain::none, Gain::channel})
    cases.push_back({.name = "gain", .p = 2.5F, .gain = gain, .row_scale = true});
  cases.push_back({.name = "soft-cap", .tq = 70, .tk = 70, .norm = QkNorm::none, .soft_cap = 5.0F});
  cases.push_back({.name = "dropout", .tq = 129, .tk = 129, .group = 2, .dropout = 0.2F});
  cases.push_back({.name = "all",
                   .tq = 70,
                   .tk = 140,
                   .d = 24,
                   .group = 2,
                   .window = 75,
                   .kv_len = 130,
                   .norm = QkNorm::layer,
                   .rope = true,
                   .order = QkOrder::after_rope,
                   .affine = true,
                   .gain = Gain::channel,
                   .soft_cap = 4.0F,
                   .dropout = 0.3F,
                   .row_scale = true});
  return cases;
}

}  // namespace normlab::testing
