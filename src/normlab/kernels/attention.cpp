// Forward pass of attention.h: tiles of 64 queries run over tiles of keys with a running maximum and sum.
// Logits are kept times log2(e), folded into q, so that the softmax is made of exp2.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "normlab/kernels/attention.cpp"
#include <hwy/foreach_target.h>
// After foreach_target.h.
#include <hwy/highway.h>

#include "normlab/kernels/attention_pack-inl.h"
#include "normlab/kernels/attention_scratch.h"

HWY_BEFORE_NAMESPACE();
namespace normlab {
namespace HWY_NAMESPACE {
namespace {

// Running state of the softmax and of the statistics, one query to a lane; logits times log2(e).
struct RunningRows {
  HWY_ALIGN float largest[kQueries];
  HWY_ALIGN float sum[kQueries];      // of 2^(S - largest)
  HWY_ALIGN float rescale[kQueries];  // of the output, by the last tile
  HWY_ALIGN float smallest[kQueries];
  HWY_ALIGN float squares[kQueries];
  HWY_ALIGN float weighted[kQueries];  // of (S - largest) 2^(S - largest)
  HWY_ALIGN uint32_t dropout_keys[kQueries];

  void clear() {
    std::fill(largest, largest + kQueries, -3e38F);
    std::fill(smallest, smallest + kQueries, 3e38F);
    for (float* row : {sum, squares, weighted}) std::fill(row, row + kQueries, 0.0F);
  }
};

// Maximum over the visible keys of one vector of lanes, not less than `most`.
HWY_INLINE VecF column_max(const Tile& tile, size_t v, const float* logits, VecF most) {
  const F32 df;
  const size_t all = tile.visible_to_all(v), any = tile.visible_to_any(v);
  VecF part[4] = {most, most, most, most};
  size_t j = tile.first_to_any(v);
  for (; j < tile.first_to_all(v); ++j)
    part[0] =
        hn::IfThenElse(lanes_that_see(tile, v, j), hn::Max(part[0], hn::Load(df, logits + j * kQueries)), part[0]);
  for (; j + 4 <= all; j += 4)
    unrolled<4>([&](auto u) HWY_ATTR { part[u] = hn::Max(part[u], hn::Load(df, logits + (j + u) * kQueries)); });
  most = hn::Max(hn::Max(part[0], part[1]), hn::Max(part[2], part[3]));
  for (; j < all; ++j) most = hn::Max(most, hn::Load(df, logits + j * kQueries));
  for (; j < any; ++j)
    most = hn::IfThenElse(lanes_that_see(tile, v, j), hn::Max(most, hn::Load(df, logits + j * kQueries)), most);
  return most;
}

// Sums of one vector of lanes over the keys of a tile.
struct ColumnSums {
  VecF sum, smallest, squares, weighted;
};

// Logits -> weights for one key; `seen` masks lanes when kMasked.
template <bool kStats, bool kDropout, bool kMasked>
HWY_INLINE void weigh_key(float* at, VecF most, const uint32_t* dropout_keys, uint32_t column, uint32_t threshold,
                          MaskF seen, ColumnSums& sums) {
  const F32 df;
  const auto logit = hn::Load(df, at);
  const auto below = hn::Sub(logit, most);
  auto weight = exp2_vec(below);
  if constexpr (kMasked) weight = hn::IfThenElseZero(seen, weight);
  sums.sum = hn::Add(sums.sum, weight);
  if constexpr (kStats) {
    const auto counted = kMasked ? hn::IfThenElseZero(seen, logit) : logit;
    sums.smallest = hn::Min(sums.smallest, kMasked ? hn::IfThenElse(seen, logit, sums.smallest) : logit);
    sums.squares = hn::MulAdd(counted, counted, sums.squares);
    sums.weighted = hn::MulAdd(kMasked ? hn::IfThenElseZero(seen, below) : below, weight, sums.weighted);
  }
  if constexpr (kDropout) weight = hn::IfThenZeroElse(dropped_lanes(dropout_keys, column, threshold), weight);
  hn::Store(weight, df, at);
}

// The running softmax over one tile whose first key is `key`; returns whether the output must be rescaled.
template <bool kStats, bool kDropout>
HWY_NOINLINE bool weigh_tile(const Tile& tile, uint32_t key, uint32_t threshold, float* tile_logits,
                             RunningRows& rows) {
  const F32 df;
  const auto everyone = hn::FirstN(df, kLanes);
  bool moved = false;
  for (size_t v = 0; v < tile.vectors(); ++v) {
    float* logits = tile_logits + v * kLanes;
    const size_t at = v * kLanes;
    const size_t all = tile.visible_to_all(v), any = tile.visible_to_any(v);
    const auto before = hn::Load(df, rows.largest + at);
    const auto most = column_max(tile, v, logits, before);
    ColumnSums sums{hn::Zero(df), hn::Load(df, rows.smallest + at), hn::Zero(df), hn::Zero(df)};
    const auto masked = [&](size_t j) HWY_ATTR {
      weigh_key<kStats, kDropout, true>(logits + j * kQueries, most, rows.dropout_keys + at,
                                        key + static_cast<uint32_t>(j), threshold, lanes_that_see(tile, v, j), sums);
    };
    size_t j = tile.zeros_begin(v);
    for (; j < tile.first_to_any(v); ++j) hn::Store(hn::Zero(df), df, logits + j * kQueries);
    for (; j < tile.first_to_all(v); ++j) masked(j);
    for (; j < all; ++j)
      weigh_key<kStats, kDropout, false>(logits + j * kQueries, most, rows.dropout_keys + at,
                                         key + static_cast<uint32_t>(j), threshold, everyone, sums);
    for (; j < any; ++j) masked(j);
    for (; j < tile.zeros_end(v); ++j) hn::Store(hn::Zero(df), df, logits + j * kQueries);

    const auto rescale = exp2_vec(hn::Sub(before, most));
    moved = moved || !hn::AllTrue(df, hn::Eq(before, most));
    hn::Store(rescale, df, rows.rescale + at);
    hn::Store(most, df, rows.largest + at);
    const auto sum_before = hn::Load(df, rows.sum + at);
    hn::Store(hn::MulAdd(sum_before, rescale, sums.sum), df, rows.sum + at);
    if constexpr (kStats) {
      hn::Store(sums.smallest, df, rows.smallest + at);
      hn::Store(hn::Add(hn::Load(df, rows.squares + at), sums.squares), df, rows.squares + at);
      const auto weighted = hn::MulAdd(hn::Sub(before, most), sum_before, hn::Load(df, rows.weighted + at));
      hn::Store(hn::MulAdd(weighted, rescale, sums.weighted), df, rows.weighted + at);
    }
  }
  return moved;
}

HWY_INLINE bool weigh(const AttentionSpec& spec, bool stats, const Tile& tile, size_t key, float* logits,
                      RunningRows& rows) {
  const auto first = static_cast<uint32_t>(key);
  if (spec.dropout > 0.0F) {
    const uint32_t threshold = drop_threshold(spec.dropout);
    return stats ? weigh_tile<true, true>(tile, first, threshold, logits, rows)
                 : weigh_tile<false, true>(tile, first, threshold, logits, rows);
  }
  return stats ? weigh_tile<true, false>(tile, first, 0, logits, rows)
               : weigh_tile<false, false>(tile, first, 0, logits, rows);
}

HWY_INLINE void rescale_rows(const RunningRows& rows, size_t count, size_t width, float* o) {
  const F32 df;
  for (size_t r = 0; r < count; ++r) {
    const auto factor = hn::Set(df, rows.rescale[r]);
    for (size_t c = r * width; c < (r + 1) * width; c += kLanes)
      hn::Store(hn::Mul(hn::Load(df, o + c), factor), df, o + c);
  }
}

// Adds the rows of a tile that see a key to the statistics; the logits become natural here.
inline void count_rows(const AttentionSpec& spec, const AttentionUnit& unit, const QueryTile& tile,
                       const RunningRows& rows, AttentionStats& stats) {
  for (size_t r = 0; r < tile.rows; ++r) {
    if (!(rows.sum[r] > 0.0F)) continue;
    const Range seen = keys_of_row(spec, unit, tile.row(r));
    const auto keys = static_cast<int64_t>(seen.end - seen.begin);
    stats.max_logit = std::max(stats.max_logit, kLn2 * rows.largest[r]);
    stats.min_logit = std::min(stats.min_logit, kLn2 * rows.smallest[r]);
    stats.sum_squares += static_cast<double>(kLn2) * static_cast<double>(kLn2) * static_cast<double>(rows.squares[r]);
    stats.n_logits += keys;
    if (keys < 2) continue;
    const float entropy = std::max(0.0F, std::log(rows.sum[r]) - kLn2 * rows.weighted[r] / rows.sum[r]);
    stats.sum_entropy += static_cast<double>(entropy);
    stats.sum_relative_entropy += static_cast<double>(entropy / std::log(static_cast<float>(keys)));
    stats.sum_spread += static_cast<double>(kLn2 * (rows.largest[r] - rows.smallest[r]));
    stats.min_entropy = std::min(stats.min_entropy, entropy);
    stats.n_saturated += rows.sum[r] * 0.99F < 1.0F;  // the largest weight is 1 / sum
    stats.n_rows += 1;
  }
}

// Writes the output and the log-sum-exp of a tile of queries.
inline void finish_rows(const AttentionSpec& spec, const AttentionUnit& unit, const QueryTile& tile,
                        const RunningRows& rows, const float* o) {
  const F32 df;
  const size_t d = static_cast<size_t>(spec.d);
  HWY_ALIGN float lse[kQueries];
  HWY_ALIGN float factor[kQueries];
  const auto keep_scale = hn::Set(df, 1.0F / (1.0F - spec.dropout));
  for (size_t r = 0; r < tile.rows; r += kLanes) {
    const auto sum = hn::Load(df, rows.sum + r);
    const auto unseen = hn::Eq(sum, hn::Zero(df));
    const auto log = hn::Mul(hn::Set(df, kLn2), hn::Add(hn::Load(df, rows.largest + r), log2_vec(sum)));
    hn::Store(hn::IfThenElse(unseen, hn::Inf(df), log), df, lse + r);
    hn::Store(hn::IfThenZeroElse(unseen, hn::Div(keep_scale, sum)), df, factor + r);
  }
  std::copy(lse, lse + tile.rows, unit.lse + tile.head * spec.tq + tile.first);
  float* to = unit.o + tile.head * spec.o_head + tile.first * spec.o_row;
  for (size_t r = 0; r < tile.rows; ++r)
    store_row(o + r * padded(d), d, hn::Set(df, factor[r]), to + static_cast<ptrdiff_t>(r) * spec.o_row);
  if (unit.stats) count_rows(spec, unit, tile, rows, unit.stats[tile.head]);
}

// A tile of queries and the tile of keys that starts at `key`: the running softmax, and what it adds to the output.
inline void forward_tile(const AttentionSpec& spec, const AttentionUnit& unit, const Tile& tile, size_t key, bool add,
                         const ForwardScratch& s, size_t i, RunningRows& rows) {
  const size_t d = static_cast<size_t>(spec.d), width = padded(d);
  tile_logits(tile, s.k_hat + key * width, d, s.q_t[i], s.logits);
  if (spec.soft_cap > 0.0F) cap_tile(tile, kLog2e * spec.soft_cap, s.logits);
  const bool moved = weigh(spec, unit.stats != nullptr, tile, key, s.logits, rows);
  if (!add) {
    sum_over_keys<false>(tile, s.logits, s.v + key * width, d, s.o[i]);
    return;
  }
  if (moved) rescale_rows(rows, tile.queries, width, s.o[i]);
  sum_over_keys<true>(tile, s.logits, s.v + key * width, d, s.o[i]);
}

void forward_unit(const AttentionSpec& spec, const AttentionUnit& unit, void* scratch) {
  Carver carver(scratch);
  const size_t width = padded(static_cast<size_t>(spec.d));
  const ForwardScratch s(carver, spec, width);
  const RowFactors factors{s.factors, s.factors + kQueries};
  pack_keys(spec, unit, s.k_hat, s.k_hat, s.v, factors, false);
  RunningRows rows[kBlockTiles];
  HWY_ALIGN float times[256];
  for (ptrdiff_t head = 0; head < spec.group; ++head) {
    if (unit.stats) unit.stats[head] = {};
    query_multiplier(spec, unit, head, times);
    for (ptrdiff_t first = 0; first < spec.tq; first += kBlockTiles * kQueries) {
      const QueryBlock block(spec, unit, head, first);
      for (size_t i = 0; i < block.count; ++i) {
        const QueryTile& queries = block.tiles[i];
        for (size_t row = 0; row < queries.rows; row += kRowBlock)
          pack_query_block(spec, unit, queries, times, row, {s.q, s.q, s.q, s.q_t[i], factors});
        rows[i].clear();
        dropout_rows(spec, unit, queries, rows[i].dropout_keys);
      }
      bool met[kBlockTiles] = {};
      block.each(kForwardKeys, met, [&](size_t i, size_t key, size_t keys, bool begun) HWY_ATTR {
        forward_tile(spec, unit, tile_at(spec, block.tiles[i], key, keys), key, begun, s, i, rows[i]);
      });
      for (size_t i = 0; i < block.count; ++i) {
        if (!met[i]) zero_rows(s.o[i], block.tiles[i].rows, width);
        finish_rows(spec, unit, block.tiles[i], rows[i], s.o[i]);
      }
    }
  }
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace normlab
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace normlab {

HWY_EXPORT(forward_unit);

void attention_forward(const AttentionSpec& spec, const AttentionUnit& unit, void* scratch) noexcept {
  HWY_DYNAMIC_DISPATCH(forward_unit)(spec, unit, scratch);
}

size_t attention_scratch_bytes(const AttentionSpec& spec, bool backward) noexcept {
  constexpr size_t widest = 16;  // lanes: whatever set is chosen later fits
  const size_t width = (static_cast<size_t>(spec.d) + widest - 1) / widest * widest;
  Carver carver(nullptr);
  if (backward) {
    BackwardScratch(carver, spec, width);
  } else {
    ForwardScratch(carver, spec, width);
  }
  return carver.bytes();
}

void merge(AttentionStats& into, const AttentionStats& other) noexcept {
  into.max_logit = std::max(into.max_logit, other.max_logit);
  into.min_logit = std::min(into.min_logit, other.min_logit);
  into.sum_squares += other.sum_squares;
  into.n_logits += other.n_logits;
  into.sum_entropy += other.sum_entropy;
  into.sum_relative_entropy += other.sum_relative_entropy;
  into.sum_spread += other.sum_spread;
  into.min_entropy = std::min(into.min_entropy, other.min_entropy);
  into.n_saturated += other.n_saturated;
  into.n_rows += other.n_rows;
}

}  // namespace normlab
#endif
