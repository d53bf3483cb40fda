// Attention of one new token to keys and values that are kept, all heads of one row.
//
//   o_h = sum_j softmax_j(cap(scale <q_h, k_j>)) v_j       q and k as they enter the product: normalised, with their
//   gain
//
// Rows are independent and every sum goes in the order of the keys: bits do not depend on what is decoded beside a row.
#pragma once

#include <cstddef>
#include <cstdint>

namespace normlab {

struct DecodeAttention {
  size_t heads = 0, group = 1;  // query heads, and how many of them share a key head
  size_t d = 0;                 // channels of a head
  float scale = 1.0F;
  float soft_cap = 0.0F;           // c of c tanh(x / c); 0: none
  const float* q = nullptr;        // [heads, d]
  const float* k = nullptr;        // [slots, heads / group, d]
  const float* v = nullptr;        // likewise
  const int32_t* slots = nullptr;  // [keys]: where the keys of this row are; null: 0, 1, 2, ...
  size_t keys = 0;                 // at least 1
  float* o = nullptr;              // [heads, d]
};

// `weights` is scratch for [keys] floats.
void decode_attention(const DecodeAttention& args, float* weights) noexcept;

}  // namespace normlab
