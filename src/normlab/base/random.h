// Counter-based random numbers: every value is a pure function of its key and index, so that resume, thread
// counts and batch splits never change a draw.
#pragma once

#include <cstdint>

namespace normlab {

// Bijective mixers of 32 and 64 bits.
constexpr uint32_t mix32(uint32_t x) {
  x ^= x >> 16;
  x *= 0x7feb352dU;
  x ^= x >> 15;
  x *= 0x846ca68bU;
  return x ^ (x >> 16);
}
constexpr uint64_t mix64(uint64_t x) {
  x ^= x >> 30;
  x *= 0xbf58476d1ce4e5b9ULL;
  x ^= x >> 27;
  x *= 0x94d049bb133111ebULL;
  return x ^ (x >> 31);
}

// A key for the stream named by its parts, e.g. stream_key(seed, fold, step).
template <class... Parts>
constexpr uint64_t stream_key(Parts... parts) {
  uint64_t key = 0x9e3779b97f4a7c15ULL;
  ((key = mix64((key ^ static_cast<uint64_t>(parts)) + 0x9e3779b97f4a7c15ULL)), ...);
  return key;
}

// Draw `index` of the stream: 64 uniform bits, and the double in [0, 1) or integer in [0, bound) made of them.
constexpr uint64_t draw_bits(uint64_t key, uint64_t index) { return mix64(key + (index + 1) * 0x9e3779b97f4a7c15ULL); }
constexpr double draw_uniform(uint64_t key, uint64_t index) {
  return static_cast<double>(draw_bits(key, index) >> 11) * 0x1.0p-53;
}
__extension__ typedef unsigned __int128 Bits128;
inline uint64_t draw_below(uint64_t key, uint64_t index, uint64_t bound) {
  return static_cast<uint64_t>((static_cast<Bits128>(draw_bits(key, index)) * bound) >> 64);
}

// Dropout: element (row, column) of a tensor is kept when keep_bits(row_key(key, row), column) >= threshold.
// 32-bit arithmetic throughout, so that a SIMD lane or a tensor op computes the same bits.
struct DropoutKey {
  uint32_t k0 = 0, k1 = 0;
};
constexpr DropoutKey dropout_key(uint64_t stream) {
  return {static_cast<uint32_t>(stream), static_cast<uint32_t>(stream >> 32)};
}
constexpr uint32_t row_key(DropoutKey key, uint32_t row) { return mix32(mix32(row + key.k0) ^ key.k1); }
constexpr uint32_t keep_bits(uint32_t row_key, uint32_t column) { return mix32(row_key + column * 0x9e3779b9U); }
constexpr uint32_t drop_threshold(double rate) {
  return rate >= 1.0 ? 0xffffffffU : static_cast<uint32_t>(rate * 0x1.0p32);
}

}  // namespace normlab
