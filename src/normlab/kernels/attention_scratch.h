// How the attention kernels divide the caller's scratch: rows of the keys, which grow with tk, and tiles, which do not.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "normlab/kernels/attention.h"

namespace normlab {

constexpr size_t kQueries = 64;      // queries of a tile: the row length of S^T
constexpr size_t kForwardKeys = 96;  // keys of a tile
constexpr size_t kBackwardKeys = 64;
constexpr size_t kBlockTiles = 4;  // tiles of queries that meet a tile of keys while it is in the cache

inline size_t block_tiles(const AttentionSpec& spec) {
  return std::min((static_cast<size_t>(spec.tq) + kQueries - 1) / kQueries, kBlockTiles);
}

// Hands out parts of the scratch in order, each on a cache line; with a null base it only counts.
class Carver {
 public:
  explicit Carver(void* base) : base_(reinterpret_cast<uintptr_t>(base)), next_((base_ + 63) / 64 * 64) {}
  float* floats(size_t count) {
    const uintptr_t at = next_;
    next_ += (count * sizeof(float) + 63) / 64 * 64;
    return reinterpret_cast<float*>(at);
  }
  size_t bytes() const { return next_ - base_ + 64; }

 private:
  uintptr_t base_, next_;
};

// Products take rows in pairs, so that arrays of rows have one row more than the tile. `width` is the padded d.
struct ForwardScratch {
  float *k_hat, *v;  // [tk + 1, width]
  float* q;          // [kQueries + 1, width]
  float* logits;     // [kForwardKeys + 1, kQueries]
  float* factors;    // [2, kQueries]
  // Of each tile of a block, as many as there are queries for.
  float* o[kBlockTiles];    // [kQueries + 1, width]
  float* q_t[kBlockTiles];  // [width, kQueries]

  ForwardScratch(Carver& carver, const AttentionSpec& spec, size_t width) {
    const size_t keys = static_cast<size_t>(spec.tk) + 1;
    k_hat = carver.floats(keys * width);
    v = carver.floats(keys * width);
    q = carver.floats((kQueries + 1) * width);
    logits = carver.floats((kForwardKeys + 1) * kQueries);
    factors = carver.floats(2 * kQueries);
    for (size_t i = 0; i < block_tiles(spec); ++i) {
      o[i] = carver.floats((kQueries + 1) * width);
      q_t[i] = carver.floats(width * kQueries);
    }
  }
};

// A tile of queries in the backward pass.
struct QueryScratch {
  float *q, *q_y, *q_hat;   // [kQueries + 1, width]
  float *d_o, *dq;          // [kQueries + 1, width]
  float *q_t, *do_t;        // [width, kQueries]
  float *q_scale, *q_pull;  // [kQueries]

  void take(Carver& carver, size_t width) {
    for (float** tile : {&q, &q_y, &q_hat, &d_o, &dq}) *tile = carver.floats((kQueries + 1) * width);
    for (float** tile : {&q_t, &do_t}) *tile = carver.floats(width * kQueries);
    for (float** row : {&q_scale, &q_pull}) *row = carver.floats(kQueries);
  }
};

struct BackwardScratch {
  float *k_hat, *k_y, *v;           // [tk + 1, width]
  float *dk, *dv;                   // [tk + 1, width]
  float *k_scale, *k_pull;          // [tk], to whole vectors
  float *p, *ds;                    // [kBackwardKeys + 1, kQueries]
  float* gain_sums;                 // [4, width]: multiplier of q, sums for d gain, d q gain, d q bias
  QueryScratch tiles[kBlockTiles];  // as many as there are queries for

  BackwardScratch(Carver& carver, const AttentionSpec& spec, size_t width) {
    const size_t keys = static_cast<size_t>(spec.tk) + 1;
    for (float** rows : {&k_hat, &k_y, &v, &dk, &dv}) *rows = carver.floats(keys * width);
    for (float** row : {&k_scale, &k_pull}) *row = carver.floats(keys + kQueries);
    for (float** tile : {&p, &ds}) *tile = carver.floats((kBackwardKeys + 1) * kQueries);
    gain_sums = carver.floats(4 * width);
    for (size_t i = 0; i < block_tiles(spec); ++i) tiles[i].take(carver, width);
  }
};

}  // namespace normlab
