// Brings the rows of one unit into scratch: normalised keys, values, and tiles of scaled queries.
#if defined(NORMLAB_KERNELS_ATTENTION_PACK_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef NORMLAB_KERNELS_ATTENTION_PACK_INL_H_
#undef NORMLAB_KERNELS_ATTENTION_PACK_INL_H_
#else
#define NORMLAB_KERNELS_ATTENTION_PACK_INL_H_
#endif

#include <hwy/highway.h>

#include <algorithm>
#include <cstring>

#include "normlab/kernels/attention_scratch.h"
#include "normlab/kernels/attention_tile-inl.h"
#include "normlab/kernels/qk_rows-inl.h"

HWY_BEFORE_NAMESPACE();
namespace normlab {
namespace HWY_NAMESPACE {

HWY_INLINE void zero_rows(float* rows, size_t count, size_t width) {
  std::memset(rows, 0, count * width * sizeof(float));
}

// k_hat and v of the first kv_len keys, and one row of zeros after them. `y` may be k_hat.
inline void pack_keys(const AttentionSpec& spec, const AttentionUnit& unit, float* y, float* k_hat, float* v,
                      RowFactors factors, bool keep_factors) {
  const size_t d = static_cast<size_t>(spec.d), width = padded(d);
  const size_t keys = static_cast<size_t>(unit.kv_len);
  const auto one = hn::Set(F32(), 1.0F);
  for (size_t j = 0; j < keys; j += kRowBlock) {
    const RowBlock block{std::min(kRowBlock, keys - j), d, static_cast<ptrdiff_t>(j)};
    const RowFactors at = keep_factors ? RowFactors{factors.scale + j, factors.pull + j} : factors;
    transform_block(spec.k, unit.k_affine, {unit.k + static_cast<ptrdiff_t>(j) * spec.k_row, spec.k_row}, block,
                    y + j * width, k_hat + j * width, at);
    for (size_t r = j; r < j + block.rows; ++r)
      load_row(unit.v + static_cast<ptrdiff_t>(r) * spec.v_row, d, one, v + r * width);
  }
  zero_rows(k_hat + keys * width, 1, width);
  zero_rows(v + keys * width, 1, width);
}

// The queries [first, first + rows) of one head of the group.
struct QueryTile {
  ptrdiff_t head, first;
  size_t rows;
  ptrdiff_t row(size_t r) const { return first + static_cast<ptrdiff_t>(r); }
};

HWY_INLINE RowAffine head_affine(const AttentionSpec& spec, const AttentionUnit& unit, ptrdiff_t head) {
  const ptrdiff_t offset = head * spec.q_affine_head;
  return {unit.q_affine.gain ? unit.q_affine.gain + offset : nullptr,
          unit.q_affine.bias ? unit.q_affine.bias + offset : nullptr};
}

// times[c]: what q_hat is multiplied by, without the row scale, for logits in natural units.
HWY_INLINE void query_multiplier(const AttentionSpec& spec, const AttentionUnit& unit, ptrdiff_t head, float* times) {
  const size_t d = static_cast<size_t>(spec.d);
  std::fill(times, times + padded(d), 0.0F);
  for (size_t c = 0; c < d; ++c) {
    const float gain =
        unit.gain ? unit.gain[spec.channel_gain ? head * spec.d + static_cast<ptrdiff_t>(c) : head] : 1.0F;
    times[c] = spec.scale * gain;
  }
}

HWY_INLINE float row_scale(const AttentionSpec& spec, ptrdiff_t row) {
  return spec.row_scale ? spec.row_scale[row] : 1.0F;
}

// q = log2(e) * row scale * times o q_hat, and the transposed of it. q_hat may be q, and y may be q_hat, where they are
// not needed apart.
struct PackedQueries {
  float *y, *q_hat, *q, *q_t;
  RowFactors factors;
};
// Rows [first, first + kRowBlock) of the tile, zeros for those it lacks.
inline void pack_query_block(const AttentionSpec& spec, const AttentionUnit& unit, const QueryTile& tile,
                             const float* times, size_t first, const PackedQueries& to) {
  const F32 df;
  const size_t d = static_cast<size_t>(spec.d), width = padded(d);
  const RowBlock block{std::min(kRowBlock, tile.rows - first), d, tile.row(first)};
  const float* from = unit.q + tile.head * spec.q_head + tile.row(first) * spec.q_row;
  float *q_hat = to.q_hat + first * width, *q = to.q + first * width;
  transform_block(spec.q, head_affine(spec, unit, tile.head), {from, spec.q_row}, block, to.y + first * width, q_hat,
                  {to.factors.scale + first, to.factors.pull + first});
  for (size_t r = 0; r < block.rows; ++r) {
    const auto factor = hn::Set(df, kLog2e * row_scale(spec, tile.row(first + r)));
    for (size_t c = 0; c < width; c += kLanes) {
      const auto scaled = hn::Mul(hn::Load(df, q_hat + r * width + c), hn::Mul(factor, hn::Load(df, times + c)));
      hn::Store(scaled, df, q + r * width + c);
    }
  }
  zero_rows(q + block.rows * width, kRowBlock - block.rows, width);
  transpose(q, kRowBlock, d, to.q_t + first);
}

// Keys of row-major dropout matrix rows, one to a lane.
HWY_INLINE void dropout_rows(const AttentionSpec& spec, const AttentionUnit& unit, const QueryTile& tile,
                             uint32_t* keys) {
  if (spec.dropout == 0.0F) return;
  for (size_t r = 0; r < kQueries; ++r)
    keys[r] = row_key(spec.dropout_key, unit.dropout_row + static_cast<uint32_t>(tile.head * spec.tq + tile.row(r)));
}

// The keys that row i sees.
HWY_INLINE Range keys_of_row(const AttentionSpec& spec, const AttentionUnit& unit, ptrdiff_t row) {
  if (!spec.causal) return {0, static_cast<size_t>(unit.kv_len)};
  const ptrdiff_t end = row + spec.tk - spec.tq + 1, begin = spec.window > 0 ? end - spec.window : 0;
  const auto clamped = [&](ptrdiff_t key) { return static_cast<size_t>(std::clamp<ptrdiff_t>(key, 0, unit.kv_len)); };
  return {clamped(begin), clamped(end)};
}
// The keys that the tile of queries sees at least in part, in pairs as products take them, and the mask of the tile
// that starts at key j.
HWY_INLINE Range visible_keys(const AttentionSpec& spec, const AttentionUnit& unit, const QueryTile& tile) {
  const size_t end = keys_of_row(spec, unit, tile.row(tile.rows - 1)).end;
  return {keys_of_row(spec, unit, tile.first).begin / 2 * 2, std::min((end + 1) / 2 * 2, size_t(unit.kv_len))};
}
HWY_INLINE Tile tile_at(const AttentionSpec& spec, const QueryTile& tile, size_t key, size_t keys) {
  const ptrdiff_t diagonal = tile.first + spec.tk - spec.tq - static_cast<ptrdiff_t>(key);
  if (!spec.causal) return {keys, tile.rows, kNoDiagonal, -kNoDiagonal};
  return {keys, tile.rows, diagonal, spec.window > 0 ? diagonal - spec.window + 1 : -kNoDiagonal};
}

// Tiles of queries of one head that are done together, and the keys that each sees. A tile of keys meets all of them
// while it is in the cache, each in the order in which it would meet the keys alone.
struct QueryBlock {
  size_t count = 0;
  QueryTile tiles[kBlockTiles];
  Range keys[kBlockTiles];

  QueryBlock(const AttentionSpec& spec, const AttentionUnit& unit, ptrdiff_t head, ptrdiff_t first) {
    for (; count < kBlockTiles && first < spec.tq; ++count, first += kQueries) {
      tiles[count] = {head, first, std::min(kQueries, static_cast<size_t>(spec.tq - first))};
      keys[count] = visible_keys(spec, unit, tiles[count]);
    }
  }
  // Calls visit(i, key, keys, begun) for every tile of `step` keys that tile i sees; begun: i has met keys before.
  // Returns through `met` which tiles met any.
  template <class Visit>
  HWY_INLINE void each(size_t step, bool* met, const Visit& visit) const {
    for (size_t key = keys[0].begin; key < keys[count - 1].end; key += step)
      for (size_t i = 0; i < count; ++i) {
        if (key >= keys[i].end || key + step <= keys[i].begin) continue;
        visit(i, key, std::min(step, keys[i].end - key), met[i]);
        met[i] = true;
      }
  }
};

}  // namespace HWY_NAMESPACE
}  // namespace normlab
HWY_AFTER_NAMESPACE();

#endif
