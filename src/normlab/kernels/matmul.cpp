// Vector code of matmul.h.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "normlab/kernels/matmul.cpp"
#include <hwy/foreach_target.h>
// After foreach_target.h.
#include <hwy/highway.h>

#include <algorithm>
#include <cstring>

#include "normlab/kernels/matmul.h"
#include "normlab/kernels/rows-inl.h"

#ifndef NORMLAB_MATMUL_BLOCKS  // once, for all instruction sets
#define NORMLAB_MATMUL_BLOCKS
namespace normlab {
inline constexpr size_t kBlockDepth = 384, kWidestBlock = 384, kBlockRows = 768;
// Copies of a block of each factor, for one thread.
struct BlockScratch {
  alignas(64) float a[kBlockRows * kBlockDepth];
  alignas(64) float b[kBlockDepth * kWidestBlock];
};
}  // namespace normlab
#endif

HWY_BEFORE_NAMESPACE();
namespace normlab {
namespace HWY_NAMESPACE {
namespace {

// 24 sums, 4 vectors of b and one of a are 29 of 32 registers; with 16 registers 12 sums, 2 and 1.
constexpr bool kManyRegisters = HWY_LANES(float) >= 16;
constexpr size_t kTileRows = 6, kVectors = kManyRegisters ? 4 : 2;
constexpr size_t kPanel = kVectors * kStep;
// Depth and width of the block of b that is used again for every strip of rows, and stays in the second-level cache:
// 590 kB of at least 1 MB with AVX-512, else 393 of 512 kB.
constexpr size_t kDepth = kBlockDepth, kWidth = kManyRegisters ? kWidestBlock : 256;

constexpr size_t blocks(size_t n, size_t most) { return (n + most - 1) / most; }
constexpr size_t even_share(size_t n, size_t most) { return n == 0 ? 1 : (n + blocks(n, most) - 1) / blocks(n, most); }
constexpr size_t whole(size_t n, size_t unit) { return (n + unit - 1) / unit * unit; }

// c[R, V vectors] (+)= a[R, depth] b[depth, V vectors]. Rows of a are a_row apart; a strip packed by columns has 0.
struct TileArgs {
  const float* a;
  size_t a_row;
  const float* b;
  size_t depth;
  float* c;
  size_t c_row;
  bool add;
};

template <size_t R, size_t V, bool kByColumns>
HWY_INLINE void tile(const TileArgs& t, size_t cols) {
  const F32 df;
  VecF sum[R][V];
  const float *HWY_RESTRICT a = t.a, *HWY_RESTRICT b = t.b;
  const size_t a_row = t.a_row, depth = t.depth;
  _Pragma("GCC unroll 8") for (size_t i = 0; i < R; ++i) {
    _Pragma("GCC unroll 4") for (size_t j = 0; j < V; ++j) {
      __builtin_prefetch(t.c + i * t.c_row + j * kStep, 1);
      sum[i][j] = hn::Zero(df);
    }
  }
  _Pragma("GCC unroll 4") for (size_t k = 0; k < depth; ++k) {
    VecF right[V];
    _Pragma("GCC unroll 4") for (size_t j = 0; j < V; ++j) right[j] = hn::Load(df, b + (k * V + j) * kStep);
    _Pragma("GCC unroll 8") for (size_t i = 0; i < R; ++i) {
      const VecF left = hn::Set(df, kByColumns ? a[k * kTileRows + i] : a[i * a_row + k]);
      _Pragma("GCC unroll 4") for (size_t j = 0; j < V; ++j) sum[i][j] = hn::MulAdd(left, right[j], sum[i][j]);
    }
  }
  _Pragma("GCC unroll 8") for (size_t i = 0; i < R; ++i) {
    _Pragma("GCC unroll 4") for (size_t j = 0; j < V; ++j) {
      float* to = t.c + i * t.c_row + j * kStep;
      if (t.add) sum[i][j] = hn::Add(sum[i][j], load_left(to, cols - j * kStep));
      store_left(sum[i][j], to, cols - j * kStep);
    }
  }
}

// One strip of R rows of c across `cols` columns: panels of b, then single vectors of it.
template <size_t R, bool kByColumns>
void strip(TileArgs t, size_t cols) {
  const float* b = t.b;
  float* c = t.c;
  for (size_t n = 0; n < cols;) {
    t.b = b + n * t.depth;
    t.c = c + n;
    if (n + kPanel <= cols) {
      tile<R, kVectors, kByColumns>(t, kPanel);
      n += kPanel;
    } else {
      tile<R, 1, kByColumns>(t, cols - n);
      n += kStep;
    }
  }
}

// A single row, as in decoding: four panels of b side by side, whose sums do not wait for each other.
void strip_of_row(TileArgs t, size_t cols) {
  constexpr size_t kPanels = 4, kSums = kPanels * kVectors;
  const F32 df;
  size_t n = 0;
  for (; n + kPanels * kPanel <= cols; n += kPanels * kPanel) {
    const float *HWY_RESTRICT a = t.a, *HWY_RESTRICT b = t.b + n * t.depth;
    VecF sum[kSums];
    _Pragma("GCC unroll 16") for (size_t j = 0; j < kSums; ++j) sum[j] = hn::Zero(df);
    for (size_t k = 0; k < t.depth; ++k) {
      const VecF left = hn::Set(df, a[k]);
      _Pragma("GCC unroll 16") for (size_t j = 0; j < kSums; ++j) {
        const size_t panel = j / kVectors, vector = j % kVectors;
        sum[j] = hn::MulAdd(left, hn::Load(df, b + panel * kPanel * t.depth + (k * kVectors + vector) * kStep), sum[j]);
      }
    }
    _Pragma("GCC unroll 16") for (size_t j = 0; j < kSums; ++j) {
      float* to = t.c + n + j * kStep;
      hn::StoreU(t.add ? hn::Add(sum[j], hn::LoadU(df, to)) : sum[j], df, to);
    }
  }
  t.b += n * t.depth;
  t.c += n;
  strip<1, false>(t, cols - n);
}

template <bool kByColumns, size_t R = kTileRows>
HWY_INLINE void strip_of(size_t rows, const TileArgs& t, size_t cols) {
  if constexpr (R == 1 && !kByColumns) return strip_of_row(t, cols);
  if (rows == R) return strip<R, kByColumns>(t, cols);
  if constexpr (R > 1) strip_of<kByColumns, R - 1>(rows, t, cols);
}

// The blocks of b [depth, cols], in the order in which they are packed: work(k, n, depth of block, columns of block).
template <class Work>
void for_each_block(size_t depth, size_t cols, const Work& work) {
  const size_t deep = even_share(depth, kDepth), wide = whole(even_share(cols, kWidth), kPanel);
  for (size_t k = 0; k < depth; k += deep)
    for (size_t n = 0; n < cols; n += wide) work(k, n, std::min(deep, depth - k), std::min(wide, cols - n));
}

void multiply_packed(const MatrixView& a, const float* packed, size_t cols, bool add, float* c) {
  for_each_block(a.cols, cols, [&](size_t k, size_t n, size_t depth, size_t width) {
    const float* b = packed + k * whole(cols, kStep) + n * depth;
    for (size_t m = 0; m < a.rows; m += kTileRows)
      strip_of<false>(std::min(kTileRows, a.rows - m),
                      {a.data + m * a.row_stride + k, a.row_stride, b, depth, c + m * cols + n, cols, add || k > 0},
                      width);
  });
}

// Four rows of four, transposed: out[k][j] = b[j][k].
HWY_INLINE void transpose4(const float* b, size_t stride, float* out, size_t width) {
#if HWY_TARGET == HWY_SCALAR
  for (size_t k = 0; k < 4; ++k)
    for (size_t j = 0; j < 4; ++j) out[k * width + j] = b[j * stride + k];
#else
  const hn::FixedTag<float, 4> d;
  const hn::Repartition<double, decltype(d)> pairs;
  const auto r0 = hn::LoadU(d, b), r1 = hn::LoadU(d, b + stride);
  const auto r2 = hn::LoadU(d, b + 2 * stride), r3 = hn::LoadU(d, b + 3 * stride);
  const auto p0 = hn::BitCast(pairs, hn::InterleaveLower(d, r0, r1));
  const auto p1 = hn::BitCast(pairs, hn::InterleaveLower(d, r2, r3));
  const auto p2 = hn::BitCast(pairs, hn::InterleaveUpper(d, r0, r1));
  const auto p3 = hn::BitCast(pairs, hn::InterleaveUpper(d, r2, r3));
  hn::StoreU(hn::BitCast(d, hn::InterleaveLower(pairs, p0, p1)), d, out);
  hn::StoreU(hn::BitCast(d, hn::InterleaveUpper(pairs, p0, p1)), d, out + width);
  hn::StoreU(hn::BitCast(d, hn::InterleaveLower(pairs, p2, p3)), d, out + 2 * width);
  hn::StoreU(hn::BitCast(d, hn::InterleaveUpper(pairs, p2, p3)), d, out + 3 * width);
#endif
}

// One panel [depth, width] of which `cols` columns exist; the others are 0.
void pack_panel(const MatrixView& b, size_t depth, size_t cols, size_t width, float* out) {
  const F32 df;
  size_t k = 0;
  if (cols == width && b.col_stride == 1)
    for (; k < depth; ++k)
      for (size_t j = 0; j < width; j += kStep)
        hn::Store(hn::LoadU(df, b.data + k * b.row_stride + j), df, out + k * width + j);
  if (cols == width && b.row_stride == 1 && width % 4 == 0)
    for (; k + 16 <= depth; k += 16)  // 16 deep: whole cache lines of the rows that become columns
      for (size_t j = 0; j < width; j += 4)
        for (size_t q = k; q < k + 16; q += 4)
          transpose4(b.data + j * b.col_stride + q, b.col_stride, out + q * width + j, width);
  for (; k < depth; ++k)
    for (size_t j = 0; j < width; ++j)
      out[k * width + j] = j < cols ? b.data[k * b.row_stride + j * b.col_stride] : 0.0F;
}

// A block of `depth` x `cols` elements that begins at (k, first) of b.
void pack_block(const MatrixView& b, size_t k, size_t first, size_t depth, size_t cols, float* out) {
  for (size_t n = 0; n < cols;) {
    MatrixView part = b;
    part.data += k * b.row_stride + (first + n) * b.col_stride;
    const size_t width = n + kPanel <= cols ? kPanel : kStep;
    pack_panel(part, depth, std::min(width, cols - n), width, out + n * depth);
    n += width;
  }
}

void pack(const MatrixView& b, float* packed) {
  for_each_block(b.rows, b.cols, [&](size_t k, size_t n, size_t depth, size_t width) {
    pack_block(b, k, n, depth, width, packed + k * whole(b.cols, kStep) + n * depth);
  });
}

size_t padded_columns(size_t cols) { return whole(cols, kStep); }

// Columns m .. m + rows of a, `depth` deep, six beside each other: what a tile reads. Eight strips at a time, which are
// few enough pages to write to.
void pack_strips(const MatrixView& a, size_t k, size_t m, size_t depth, size_t rows, float* out) {
  constexpr size_t together = 8 * kTileRows;
  for (size_t first = 0; first < rows; first += together, out += together * depth) {
    const size_t now = std::min(together, rows - first), strips = now / kTileRows, left = now % kTileRows;
    for (size_t q = 0; q < depth; ++q) {
      const float* from = a.data + (k + q) * a.row_stride + m + first;
      float* to = out + q * kTileRows;
      for (size_t strip = 0; strip < strips; ++strip)
        std::memcpy(to + strip * kTileRows * depth, from + strip * kTileRows, kTileRows * sizeof(float));
      if (left > 0) std::memcpy(to + strips * kTileRows * depth, from + strips * kTileRows, left * sizeof(float));
    }
  }
}

// Both factors are copied block by block: in place, every step of k would open another page of memory.
void multiply_transposed(const MatrixView& a, const MatrixView& b, bool add, float* c, BlockScratch& scratch) {
  for (size_t m = 0; m < a.cols; m += kBlockRows) {
    const size_t rows = std::min(kBlockRows, a.cols - m);
    for_each_block(b.rows, b.cols, [&](size_t k, size_t n, size_t depth, size_t width) {
      if (n == 0) pack_strips(a, k, m, depth, rows, scratch.a);
      pack_block(b, k, n, depth, width, scratch.b);
      for (size_t strip = 0; strip < rows; strip += kTileRows)
        strip_of<true>(
            std::min(kTileRows, rows - strip),
            {scratch.a + strip * depth, 0, scratch.b, depth, c + (m + strip) * b.cols + n, b.cols, add || k > 0},
            width);
    });
  }
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace normlab
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace normlab {

HWY_EXPORT(multiply_packed);
HWY_EXPORT(multiply_transposed);
HWY_EXPORT(pack);
HWY_EXPORT(padded_columns);

size_t packed_floats(size_t rows, size_t cols) noexcept { return rows * HWY_DYNAMIC_DISPATCH(padded_columns)(cols); }

void pack_matrix(const MatrixView& b, float* packed) noexcept { HWY_DYNAMIC_DISPATCH(pack)(b, packed); }

void matmul_packed(const MatrixView& a, const float* packed_b, size_t cols, bool add, float* c) noexcept {
  HWY_DYNAMIC_DISPATCH(multiply_packed)(a, packed_b, cols, add, c);
}

void matmul_transposed(const MatrixView& a, const MatrixView& b, bool add, float* c) noexcept {
  thread_local BlockScratch scratch;
  HWY_DYNAMIC_DISPATCH(multiply_transposed)(a, b, add, c, scratch);
}

}  // namespace normlab
#endif
