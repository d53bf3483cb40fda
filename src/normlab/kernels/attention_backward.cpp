// Backward pass of attention.h: for each tile of queries and each tile of keys, A is computed again from the
// log-sum-exp; dq grows in the tile of queries, dk and dv in rows of scratch until the unit is done. A tile of keys
// meets several tiles of queries while it is in the cache, in the order in which it would meet them one by one.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "normlab/kernels/attention_backward.cpp"
#include <hwy/foreach_target.h>
// After foreach_target.h.
#include <hwy/highway.h>

#include "normlab/kernels/attention_pack-inl.h"

HWY_BEFORE_NAMESPACE();
namespace normlab {
namespace HWY_NAMESPACE {
namespace {

// What the backward pass knows of each query, one to a lane.
struct QueryRows {
  HWY_ALIGN float lse[kQueries];    // times log2(e)
  HWY_ALIGN float delta[kQueries];  // rowsum(dO o O)
  HWY_ALIGN uint32_t dropout_keys[kQueries];
};

// Constants of the element-wise part.
struct WeightParams {
  uint32_t key, threshold;
  float cap;  // times log2(e); 0: none
};

// p: logits -> dropped weights, ds: dO V^T -> dS, for one key and one vector of lanes.
template <bool kDropout, bool kMasked>
HWY_INLINE void key_gradient(float* p, float* ds, VecF lse, VecF delta, const uint32_t* dropout_keys, uint32_t column,
                             const WeightParams& params, MaskF seen) {
  const F32 df;
  const auto logit = hn::Load(df, p);
  auto weight = exp2_vec(hn::Sub(logit, lse));
  if constexpr (kMasked) weight = hn::IfThenElseZero(seen, weight);
  auto d_weight = hn::Load(df, ds);
  auto kept = weight;
  if constexpr (kDropout) {
    const auto dropped = dropped_lanes(dropout_keys, column, params.threshold);
    kept = hn::IfThenZeroElse(dropped, weight);
    d_weight = hn::IfThenZeroElse(dropped, d_weight);
  }
  auto d_logit = hn::Mul(weight, hn::Sub(d_weight, delta));
  if constexpr (kMasked) d_logit = hn::IfThenElseZero(seen, d_logit);
  if (params.cap > 0.0F) {
    const auto ratio = hn::Mul(logit, hn::Set(df, 1.0F / params.cap));
    d_logit = hn::Mul(d_logit, hn::NegMulAdd(ratio, ratio, hn::Set(df, 1.0F)));
  }
  hn::Store(kept, df, p);
  hn::Store(d_logit, df, ds);
}

template <bool kDropout>
HWY_NOINLINE void tile_gradient(const Tile& tile, const WeightParams& params, const QueryRows& rows, float* tile_p,
                                float* tile_ds) {
  const F32 df;
  const auto everyone = hn::FirstN(df, kLanes);
  for (size_t v = 0; v < tile.vectors(); ++v) {
    const size_t at = v * kLanes;
    const size_t all = tile.visible_to_all(v), any = tile.visible_to_any(v);
    const auto lse = hn::Load(df, rows.lse + at);
    const auto delta = hn::Load(df, rows.delta + at);
    size_t j = tile.zeros_begin(v);
    float *p = tile_p + at + j * kQueries, *ds = tile_ds + at + j * kQueries;
    const auto masked_until = [&](size_t end) HWY_ATTR {
      for (; j < end; ++j, p += kQueries, ds += kQueries)
        key_gradient<kDropout, true>(p, ds, lse, delta, rows.dropout_keys + at, params.key + static_cast<uint32_t>(j),
                                     params, lanes_that_see(tile, v, j));
    };
    const auto zeros_until = [&](size_t end) HWY_ATTR {
      for (; j < end; ++j, p += kQueries, ds += kQueries) {
        hn::Store(hn::Zero(df), df, p);
        hn::Store(hn::Zero(df), df, ds);
      }
    };
    zeros_until(tile.first_to_any(v));
    masked_until(tile.first_to_all(v));
    for (; j < all; ++j, p += kQueries, ds += kQueries)
      key_gradient<kDropout, false>(p, ds, lse, delta, rows.dropout_keys + at, params.key + static_cast<uint32_t>(j),
                                    params, everyone);
    masked_until(any);
    zeros_until(tile.zeros_end(v));
  }
}

HWY_INLINE float row_dot(const float* a, const float* b, size_t d) {
  const F32 df;
  auto sum = hn::Zero(df);
  size_t c = 0;
  for (; c + kLanes <= d; c += kLanes) sum = hn::MulAdd(hn::LoadU(df, a + c), hn::LoadU(df, b + c), sum);
  float dot = hn::GetLane(hn::SumOfLanes(df, sum));
  for (; c < d; ++c) dot += a[c] * b[c];
  return dot;
}

// Rows and columns of dO, times 1 / (1 - dropout), and delta and lse, for rows [first, first + kRowBlock) of the tile.
inline void pack_output_block(const AttentionSpec& spec, const AttentionUnit& unit, const AttentionGrads& grads,
                              const QueryTile& tile, size_t first, const QueryScratch& s, QueryRows& rows) {
  const size_t d = static_cast<size_t>(spec.d), width = padded(d);
  const float* d_o = grads.d_o + tile.head * grads.do_head + tile.row(first) * grads.do_row;
  const float* o = unit.o + tile.head * spec.o_head + tile.row(first) * spec.o_row;
  const auto keep_scale = hn::Set(F32(), 1.0F / (1.0F - spec.dropout));
  const size_t end = std::min(first + kRowBlock, tile.rows);
  for (size_t r = first; r < end; ++r, d_o += grads.do_row, o += spec.o_row) {
    load_row(d_o, d, keep_scale, s.d_o + r * width);
    rows.delta[r] = row_dot(d_o, o, d);
    rows.lse[r] = kLog2e * unit.lse[tile.head * spec.tq + tile.row(r)];
  }
  std::fill(rows.delta + end, rows.delta + first + kRowBlock, 0.0F);
  std::fill(rows.lse + end, rows.lse + first + kRowBlock, 0.0F);
  zero_rows(s.d_o + end * width, first + kRowBlock - end, width);
  transpose(s.d_o + first * width, kRowBlock, d, s.do_t + first);
}

// All five products of a tile of queries and the tile of keys that starts at `key`: adds sum_j dS_ij k_hat_j to dq, or
// writes it, and adds to dk (times log2(e)) and dv.
inline void backward_tile(const AttentionSpec& spec, const Tile& tile, size_t key, bool add, const BackwardScratch& s,
                          const QueryScratch& q, const QueryRows& rows) {
  const size_t d = static_cast<size_t>(spec.d), at = key * padded(d);
  const WeightParams params{static_cast<uint32_t>(key), drop_threshold(spec.dropout), kLog2e * spec.soft_cap};
  tile_logits(tile, s.k_hat + at, d, q.q_t, s.p);
  if (spec.soft_cap > 0.0F) cap_tile(tile, params.cap, s.p);
  tile_logits(tile, s.v + at, d, q.do_t, s.ds);
  if (spec.dropout > 0.0F) {
    tile_gradient<true>(tile, params, rows, s.p, s.ds);
  } else {
    tile_gradient<false>(tile, params, rows, s.p, s.ds);
  }
  add_over_queries(tile, s.p, q.d_o, d, s.dv + at);
  add_over_queries(tile, s.ds, q.q, d, s.dk + at);
  if (add) {
    sum_over_keys<true>(tile, s.ds, s.k_hat + at, d, q.dq);
  } else {
    sum_over_keys<false>(tile, s.ds, s.k_hat + at, d, q.dq);
  }
}

// Sums over rows that a head's query tiles share; padded rows of scratch, natural units.
struct HeadSums {
  float *times, *gain, *q_gain, *q_bias;
  explicit HeadSums(float* base, size_t width)
      : times(base), gain(base + width), q_gain(base + 2 * width), q_bias(base + 3 * width) {}
};

// dq = d(q_hat) through the transform, and sum_i row_scale_i dq_i q_hat_i for the gain; rows as in pack_output_block.
inline void finish_query_block(const AttentionSpec& spec, const AttentionUnit& unit, const AttentionGrads& grads,
                               const QueryTile& tile, size_t first, const QueryScratch& s, const HeadSums& sums) {
  const F32 df;
  const size_t d = static_cast<size_t>(spec.d), width = padded(d);
  const RowBlock block{std::min(kRowBlock, tile.rows - first), d, tile.row(first)};
  float *dq = s.dq + first * width, *q_hat = s.q_hat + first * width;
  for (size_t c = 0; c < width; c += kLanes) {
    auto gain = hn::Zero(df);
    const auto times = hn::Load(df, sums.times + c);
    for (size_t r = 0; r < block.rows; ++r) {
      const auto g = hn::Mul(hn::Load(df, dq + r * width + c), hn::Set(df, row_scale(spec, tile.row(first + r))));
      gain = hn::MulAdd(g, hn::Load(df, q_hat + r * width + c), gain);
      hn::Store(hn::Mul(g, times), df, dq + r * width + c);
    }
    hn::Store(hn::Add(hn::Load(df, sums.gain + c), gain), df, sums.gain + c);
  }
  float* to = grads.dq + tile.head * grads.dq_head + tile.row(first) * grads.dq_row;
  transform_block_backward(spec.q, head_affine(spec, unit, tile.head), block, s.q_y + first * width,
                           {s.q_scale + first, s.q_pull + first}, dq, {sums.q_gain, sums.q_bias, grads.q.p},
                           {to, grads.dq_row});
}

// Writes the gradients that the query tiles of one head share.
inline void finish_head(const AttentionSpec& spec, const AttentionGrads& grads, ptrdiff_t head, const HeadSums& sums) {
  const size_t d = static_cast<size_t>(spec.d);
  float* row = spec.channel_gain ? grads.d_gain + head * spec.d : nullptr;
  double total = 0.0;
  for (size_t c = 0; c < d && grads.d_gain; ++c) {
    const float value = sums.gain[c] * spec.scale;
    if (row) row[c] = value;
    total += static_cast<double>(value);
  }
  if (grads.d_gain && !row) grads.d_gain[head] = static_cast<float>(total);
  if (grads.q.gain) std::copy(sums.q_gain, sums.q_gain + d, grads.q.gain + head * spec.d);
  if (grads.q.bias) std::copy(sums.q_bias, sums.q_bias + d, grads.q.bias + head * spec.d);
}

// dk and dv of every key, zero for padding keys, and the gradients that keys share.
inline void finish_keys(const AttentionSpec& spec, const AttentionUnit& unit, const AttentionGrads& grads,
                        const BackwardScratch& s, const float* y) {
  const F32 df;
  const size_t d = static_cast<size_t>(spec.d), width = padded(d);
  const size_t keys = static_cast<size_t>(unit.kv_len), all = static_cast<size_t>(spec.tk);
  float *gain = s.gain_sums, *bias = s.gain_sums + width;
  zero_rows(gain, 2, width);
  const auto one = hn::Set(df, 1.0F);
  const auto ln2 = hn::Set(df, kLn2);
  for (size_t j = 0; j < keys; j += kRowBlock) {
    const RowBlock block{std::min(kRowBlock, keys - j), d, static_cast<ptrdiff_t>(j)};
    for (size_t c = j * width; c < (j + block.rows) * width; c += kLanes)
      hn::Store(hn::Mul(hn::Load(df, s.dk + c), ln2), df, s.dk + c);
    transform_block_backward(spec.k, unit.k_affine, block, y + j * width, {s.k_scale + j, s.k_pull + j},
                             s.dk + j * width, {gain, bias, grads.k.p},
                             {grads.dk + static_cast<ptrdiff_t>(j) * grads.dk_row, grads.dk_row});
  }
  for (size_t j = 0; j < keys; ++j)
    store_row(s.dv + j * width, d, one, grads.dv + static_cast<ptrdiff_t>(j) * grads.dv_row);
  for (size_t j = keys; j < all; ++j) {
    std::fill_n(grads.dk + static_cast<ptrdiff_t>(j) * grads.dk_row, d, 0.0F);
    std::fill_n(grads.dv + static_cast<ptrdiff_t>(j) * grads.dv_row, d, 0.0F);
  }
  if (grads.k.gain) std::copy(gain, gain + d, grads.k.gain);
  if (grads.k.bias) std::copy(bias, bias + d, grads.k.bias);
}

inline void pack_tile(const AttentionSpec& spec, const AttentionUnit& unit, const AttentionGrads& grads,
                      const QueryTile& tile, const float* times, const QueryScratch& s, QueryRows& rows) {
  for (size_t row = 0; row < tile.rows; row += kRowBlock) {
    pack_query_block(spec, unit, tile, times, row, {s.q_y, s.q_hat, s.q, s.q_t, {s.q_scale, s.q_pull}});
    pack_output_block(spec, unit, grads, tile, row, s, rows);
  }
  dropout_rows(spec, unit, tile, rows.dropout_keys);
}

void backward_unit(const AttentionSpec& spec, const AttentionUnit& unit, const AttentionGrads& grads, void* scratch) {
  Carver carver(scratch);
  const size_t width = padded(static_cast<size_t>(spec.d));
  BackwardScratch s(carver, spec, width);
  if (!changes_after_norm(spec.k, unit.k_affine)) s.k_y = s.k_hat;
  for (size_t i = 0; i < block_tiles(spec); ++i)
    if (!changes_after_norm(spec.q, unit.q_affine)) s.tiles[i].q_y = s.tiles[i].q_hat;
  for (double* p : {grads.q.p, grads.k.p})
    if (p) *p = 0.0;
  pack_keys(spec, unit, s.k_y, s.k_hat, s.v, {s.k_scale, s.k_pull}, true);
  zero_rows(s.dk, static_cast<size_t>(unit.kv_len) + 1, width);
  zero_rows(s.dv, static_cast<size_t>(unit.kv_len) + 1, width);

  const HeadSums sums(s.gain_sums, width);
  QueryRows rows[kBlockTiles];
  for (ptrdiff_t head = 0; head < spec.group; ++head) {
    query_multiplier(spec, unit, head, sums.times);
    zero_rows(sums.gain, 3, width);
    for (ptrdiff_t first = 0; first < spec.tq; first += kBlockTiles * kQueries) {
      const QueryBlock block(spec, unit, head, first);
      for (size_t i = 0; i < block.count; ++i)
        pack_tile(spec, unit, grads, block.tiles[i], sums.times, s.tiles[i], rows[i]);
      bool met[kBlockTiles] = {};
      block.each(kBackwardKeys, met, [&](size_t i, size_t key, size_t keys, bool begun) HWY_ATTR {
        backward_tile(spec, tile_at(spec, block.tiles[i], key, keys), key, begun, s, s.tiles[i], rows[i]);
      });
      for (size_t i = 0; i < block.count; ++i) {
        if (!met[i]) zero_rows(s.tiles[i].dq, block.tiles[i].rows, width);
        for (size_t row = 0; row < block.tiles[i].rows; row += kRowBlock)
          finish_query_block(spec, unit, grads, block.tiles[i], row, s.tiles[i], sums);
      }
    }
    finish_head(spec, grads, head, sums);
  }
  finish_keys(spec, unit, grads, s, s.k_y);
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace normlab
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace normlab {

HWY_EXPORT(backward_unit);

void attention_backward(const AttentionSpec& spec, const AttentionUnit& unit, const AttentionGrads& grads,
                        void* scratch) noexcept {
  HWY_DYNAMIC_DISPATCH(backward_unit)(spec, unit, grads, scratch);
}

}  // namespace normlab
#endif
