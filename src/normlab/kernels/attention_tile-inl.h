// Register-blocked products, transposition and masks on the tiles of the attention kernels.
//
// Queries lie in the lanes: a tile of logits is S^T[key][query], so that maxima, sums and masks over keys are plain
// vector operations, and every product is an outer-product kernel C[rows][lanes] = sum_k A(row, k) B[k][lanes] that
// broadcasts A and keeps rows x vectors accumulators in registers:
//   S^T = K Q^T, dP^T = V dO^T             A = rows of K, V            B = Q, dO transposed
//   O += P V, dQ += dS K                   A = columns of P^T, dS^T    B = rows of V, K
//   dV += P^T dO, dK += dS^T Q             A = rows of P^T, dS^T       B = rows of dO, Q
#if defined(NORMLAB_KERNELS_ATTENTION_TILE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef NORMLAB_KERNELS_ATTENTION_TILE_INL_H_
#undef NORMLAB_KERNELS_ATTENTION_TILE_INL_H_
#else
#define NORMLAB_KERNELS_ATTENTION_TILE_INL_H_
#endif

#include <hwy/highway.h>

#include <algorithm>
#include <utility>

#include "normlab/kernels/attention_scratch.h"
#include "normlab/kernels/qk_rows-inl.h"

HWY_BEFORE_NAMESPACE();
namespace normlab {
namespace HWY_NAMESPACE {

constexpr ptrdiff_t kNoDiagonal = ptrdiff_t{1} << 40;
constexpr float kLog2e = 1.4426950408889634F;
constexpr float kLn2 = 0.6931471805599453F;

// Vectors and rows of the register block: 24 accumulators of 32 registers (AVX-512), else 12 of 16.
constexpr size_t kMaxVectors = HWY_MAX_BYTES == 64 ? 4 : 2;
constexpr size_t block_rows(size_t vectors) {
  if (HWY_MAX_BYTES < 64) return 6;
  return vectors == 4 ? 6 : vectors == 3 ? 8 : 12;
}
constexpr size_t kMaxRows = 12;

template <class Body, size_t... I>
HWY_INLINE void unrolled(const Body& body, std::index_sequence<I...>) {
  (body(std::integral_constant<size_t, I>()), ...);
}
// Calls body(0) ... body(kCount - 1) with constants, so that arrays of vectors stay in registers.
template <size_t kCount, class Body>
HWY_INLINE void unrolled(const Body& body) {
  unrolled(body, std::make_index_sequence<kCount>());
}

// How A is read: A(row, k) at data[row * stride + k], or at data[k * stride + row]. The stride of a tile is constant.
struct RowsOf {
  const float* data;
  size_t stride;
  HWY_INLINE float at(size_t row, size_t k) const { return data[row * stride + k]; }
};
struct TileRows {
  const float* data;
  HWY_INLINE float at(size_t row, size_t k) const { return data[row * kQueries + k]; }
};
struct TileColumns {
  const float* data;
  HWY_INLINE float at(size_t row, size_t k) const { return data[k * kQueries + row]; }
};

struct Lanes {
  float* data;
  size_t stride;
};
struct ConstLanes {
  const float* data;
  size_t stride;
};
struct Range {
  size_t begin, end;
};

// C[row .. row + kRows) (+)= sum over k of A(row, k) B[k], kVectors wide.
template <size_t kRows, size_t kVectors, bool kAdd, class A>
HWY_INLINE void register_block(const A& a, ConstLanes b, Lanes c, size_t row, Range k) {
  const F32 df;
  VecF sum[kRows * kVectors];
  unrolled<kRows * kVectors>([&](auto i) HWY_ATTR { sum[i] = hn::Zero(df); });
  for (size_t kk = k.begin; kk < k.end; ++kk) {
    VecF lanes[kVectors];
    unrolled<kVectors>([&](auto v) HWY_ATTR { lanes[v] = hn::Load(df, b.data + kk * b.stride + v * kLanes); });
    unrolled<kRows>([&](auto r) HWY_ATTR {
      const auto value = hn::Set(df, a.at(row + r, kk));
      unrolled<kVectors>([&](auto v)
                             HWY_ATTR { sum[r * kVectors + v] = hn::MulAdd(value, lanes[v], sum[r * kVectors + v]); });
    });
  }
  unrolled<kRows * kVectors>([&](auto i) HWY_ATTR {
    constexpr size_t r = i / kVectors, v = i % kVectors;
    float* to = c.data + (row + r) * c.stride + v * kLanes;
    hn::Store(kAdd ? hn::Add(hn::Load(df, to), sum[i]) : sum[i], df, to);
  });
}

// Rows [rows.begin, rows.end) of C; an odd last row takes one more row of A and C along. `depth(row, count)` is the
// range of k of a block of rows.
template <size_t kVectors, bool kAdd, class A, class Depth>
HWY_NOINLINE void product_rows(const A& a, ConstLanes b, Lanes c, Range rows, const Depth& depth) {
  constexpr size_t kRows = block_rows(kVectors);
  size_t row = rows.begin;
  for (; row + kRows <= rows.end; row += kRows) register_block<kRows, kVectors, kAdd>(a, b, c, row, depth(row, kRows));
  for (; row + 4 <= rows.end; row += 4) register_block<4, kVectors, kAdd>(a, b, c, row, depth(row, 4));
  for (; row < rows.end; row += 2) register_block<2, kVectors, kAdd>(a, b, c, row, depth(row, 2));
}

// C[rows][vectors] (+)= A B.
template <bool kAdd, class A, class Depth>
HWY_INLINE void product(const A& a, ConstLanes b, Lanes c, Range rows, size_t vectors, const Depth& depth) {
  while (vectors > 0) {
    // Equal parts: 5 vectors are done as 3 + 2, not as 4 + 1.
    const size_t parts = (vectors + kMaxVectors - 1) / kMaxVectors;
    const size_t now = (vectors + parts - 1) / parts;
    if constexpr (kMaxVectors == 4) {
      if (now == 4) product_rows<4, kAdd>(a, b, c, rows, depth);
      if (now == 3) product_rows<3, kAdd>(a, b, c, rows, depth);
    }
    if (now == 2) product_rows<2, kAdd>(a, b, c, rows, depth);
    if (now == 1) product_rows<1, kAdd>(a, b, c, rows, depth);
    b.data += now * kLanes;
    c.data += now * kLanes;
    vectors -= now;
  }
}

// Sizes and mask of one tile: query lane i sees key row j of the tile when i + oldest <= j <= i + diagonal.
struct Tile {
  size_t keys, queries;
  ptrdiff_t diagonal, oldest;
  size_t vectors() const { return (queries + kLanes - 1) / kLanes; }
  size_t clamp_key(ptrdiff_t key) const {
    return static_cast<size_t>(std::clamp<ptrdiff_t>(key, 0, static_cast<ptrdiff_t>(keys)));
  }
  // Keys seen by lane i are [first_visible(i), visible(i)).
  size_t first_visible(size_t lane) const { return clamp_key(static_cast<ptrdiff_t>(lane) + oldest); }
  size_t visible(size_t lane) const { return clamp_key(static_cast<ptrdiff_t>(lane) + diagonal + 1); }
  // Of a vector of lanes: some lane sees the keys from `first_to_any` to `visible_to_any`, every lane those from
  // `first_to_all` to `visible_to_all`, if there are any.
  size_t first_to_any(size_t vector) const { return first_visible(vector * kLanes); }
  size_t first_to_all(size_t vector) const {
    return std::min(first_visible(vector * kLanes + kLanes - 1), visible_to_any(vector));
  }
  size_t visible_to_all(size_t vector) const { return visible(vector * kLanes); }
  size_t visible_to_any(size_t vector) const { return visible(vector * kLanes + kLanes - 1); }
  // Rows that the products read although no lane of the vector sees them: they must hold zeros.
  size_t zeros_begin(size_t vector) const {
    return first_to_any(vector) - std::min(first_to_any(vector), kMaxRows - 1);
  }
  size_t zeros_end(size_t vector) const { return std::min(keys, visible_to_any(vector) + kMaxRows - 1); }
  size_t clamp_lane(ptrdiff_t lane) const {
    return static_cast<size_t>(std::clamp<ptrdiff_t>(lane, 0, static_cast<ptrdiff_t>(queries)));
  }
  // Lanes that see the key are [first_lane(key), end_lane(key)).
  size_t first_lane(size_t key) const { return clamp_lane(static_cast<ptrdiff_t>(key) - diagonal); }
  size_t end_lane(size_t key) const { return clamp_lane(static_cast<ptrdiff_t>(key) - oldest + 1); }
};

// Mask of the lanes of a vector that see key j.
HWY_INLINE MaskF lanes_that_see(const Tile& tile, size_t vector, size_t key) {
  const I32 di;
  constexpr ptrdiff_t lanes = kLanes;
  const ptrdiff_t at = static_cast<ptrdiff_t>(key) - static_cast<ptrdiff_t>(vector) * lanes;
  const ptrdiff_t first = std::max<ptrdiff_t>(at - tile.diagonal, 0), last = std::min(at - tile.oldest, lanes);
  const auto lane = hn::Iota(di, 0);
  const auto new_enough = hn::Gt(lane, hn::Set(di, static_cast<int32_t>(first - 1)));
  return hn::RebindMask(F32(), hn::And(new_enough, hn::Lt(lane, hn::Set(di, static_cast<int32_t>(last + 1)))));
}

// out[key][lane] = <rows of k, columns of qt> for every vector of lanes that sees the key.
HWY_INLINE void tile_logits(const Tile& tile, const float* rows, size_t d, const float* transposed, float* out) {
  const size_t vectors = tile.vectors();
  const auto depth = [d](size_t, size_t) { return Range{0, d}; };
  size_t key = tile.first_to_any(0), first = 0, last = 0;  // the vectors [first, last) see the key
  while (key < tile.keys) {
    while (last < vectors && tile.first_to_any(last) <= key) ++last;
    while (first + 1 < vectors && tile.visible_to_any(first) <= key) ++first;
    size_t end = first + 1 == vectors ? tile.keys : tile.visible_to_any(first);
    if (last < vectors) end = std::min(end, tile.first_to_any(last));
    if (first < last)
      product<false>(RowsOf{rows, padded(d)}, {transposed + first * kLanes, kQueries}, {out + first * kLanes, kQueries},
                     {key, end}, last - first, depth);
    key = end;
  }
}

// c[lane] (+)= sum over visible keys of tile[key][lane] rows[key].
template <bool kAdd>
HWY_INLINE void sum_over_keys(const Tile& tile, const float* weights, const float* rows, size_t d, float* c) {
  const auto depth = [&tile](size_t row, size_t count) {
    return Range{tile.first_visible(row), tile.visible(row + count - 1)};
  };
  product<kAdd>(TileColumns{weights}, {rows, padded(d)}, {c, padded(d)}, {0, tile.queries}, padded(d) / kLanes, depth);
}

// c[key] += sum over lanes that see the key of tile[key][lane] rows[lane].
HWY_INLINE void add_over_queries(const Tile& tile, const float* weights, const float* rows, size_t d, float* c) {
  const auto depth = [&tile](size_t row, size_t count) {
    return Range{tile.first_lane(row), tile.end_lane(row + count - 1)};
  };
  product<true>(TileRows{weights}, {rows, padded(d)}, {c, padded(d)}, {0, tile.keys}, padded(d) / kLanes, depth);
}

// to[channel][row] = from[row][channel]; rows are whole vectors.
#if HWY_TARGET == HWY_SCALAR
inline void transpose(const float* from, size_t rows, size_t d, float* to) {
  for (size_t r = 0; r < rows; ++r)
    for (size_t h = 0; h < d; ++h) to[h * kQueries + r] = from[r * padded(d) + h];
}
#else
// Four channels of kCount rows: the rows 0, 4, 8 ... in the 128-bit blocks of one vector.
template <size_t kCount = kLanes>
HWY_INLINE auto load_blocks(const float* from, size_t stride) {
  const hn::FixedTag<float, kCount> tag;
  if constexpr (kCount == 4) {
    return hn::Load(tag, from);
  } else {
    return hn::Combine(tag, load_blocks<kCount / 2>(from + kCount / 2 * stride, stride),
                       load_blocks<kCount / 2>(from, stride));
  }
}

inline void transpose(const float* from, size_t rows, size_t d, float* to) {
  const F32 df;
  const hn::RepartitionToWide<U32> du64;
  const size_t stride = padded(d);
  for (size_t r = 0; r < rows; r += kLanes) {
    for (size_t h = 0; h < d; h += 4) {
      const float* at = from + r * stride + h;
      const auto a = load_blocks(at, stride), b = load_blocks(at + stride, stride);
      const auto c = load_blocks(at + 2 * stride, stride), e = load_blocks(at + 3 * stride, stride);
      const auto ab0 = hn::BitCast(du64, hn::InterleaveLower(df, a, b));
      const auto ab2 = hn::BitCast(du64, hn::InterleaveUpper(df, a, b));
      const auto ce0 = hn::BitCast(du64, hn::InterleaveLower(df, c, e));
      const auto ce2 = hn::BitCast(du64, hn::InterleaveUpper(df, c, e));
      float* out = to + h * kQueries + r;
      hn::Store(hn::BitCast(df, hn::InterleaveLower(du64, ab0, ce0)), df, out);
      hn::Store(hn::BitCast(df, hn::InterleaveUpper(du64, ab0, ce0)), df, out + kQueries);
      hn::Store(hn::BitCast(df, hn::InterleaveLower(du64, ab2, ce2)), df, out + 2 * kQueries);
      hn::Store(hn::BitCast(df, hn::InterleaveUpper(du64, ab2, ce2)), df, out + 3 * kQueries);
    }
  }
}
#endif

// The lanes of dropped weights of one key: base/random.h in vectors, one row of the dropout matrix to a lane.
HWY_INLINE MaskF dropped_lanes(const uint32_t* row_keys, uint32_t column, uint32_t threshold) {
  const U32 du;
  auto x = hn::Add(hn::Load(du, row_keys), hn::Set(du, column * 0x9e3779b9U));
  x = hn::Xor(x, hn::ShiftRight<16>(x));
  x = hn::Mul(x, hn::Set(du, 0x7feb352dU));
  x = hn::Xor(x, hn::ShiftRight<15>(x));
  x = hn::Mul(x, hn::Set(du, 0x846ca68bU));
  x = hn::Xor(x, hn::ShiftRight<16>(x));
  return hn::RebindMask(F32(), hn::Lt(x, hn::Set(du, threshold)));
}

// S -> cap tanh(S / cap) on the part of the tile that tile_logits wrote.
inline void cap_tile(const Tile& tile, float cap, float* logits) {
  const F32 df;
  const auto inverse = hn::Set(df, 1.0F / cap);
  for (size_t v = 0; v < tile.vectors(); ++v)
    for (size_t key = tile.first_to_any(v); key < tile.visible_to_any(v); ++key) {
      float* at = logits + key * kQueries + v * kLanes;
      hn::Store(hn::Mul(hn::Set(df, cap), tanh_vec(hn::Mul(hn::Load(df, at), inverse))), df, at);
    }
}

}  // namespace HWY_NAMESPACE
}  // namespace normlab
HWY_AFTER_NAMESPACE();

#endif
