#include "normlab/kernels/decode_attention.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "kernels/every_target.h"
#include "kernels/scalar/twins.h"
#include "normlab/base/random.h"

namespace normlab {
namespace {

std::vector<float> draws(size_t n, uint64_t key) {
  std::vector<float> out(n);
  for (size_t i = 0; i < n; ++i) out[i] = static_cast<float>(4.0 * draw_uniform(key, i) - 2.0);
  return out;
}

struct Case {
  size_t heads, group, d, keys;
  std::vector<float> q, k, v, o;
  std::vector<int32_t> slots;

  Case(size_t heads_in, size_t group_in, size_t d_in, size_t keys_in)
      : heads(heads_in), group(group_in), d(d_in), keys(keys_in), q(draws(heads * d, 1)), o(heads * d) {
    const size_t places = 3 * keys;
    k = draws(places * heads / group * d, 2), v = draws(places * heads / group * d, 3);
    for (size_t j = 0; j < keys; ++j) slots.push_back(static_cast<int32_t>((7 * j + 1) % places));
  }
  DecodeAttention args(bool scattered) {
    return {.heads = heads,
            .group = group,
            .d = d,
            .scale = 0.7F,
            .q = q.data(),
            .k = k.data(),
            .v = v.data(),
            .slots = scattered ? slots.data() : nullptr,
            .keys = keys,
            .o = o.data()};
  }
};

TEST(DecodeAttention, EveryTargetEqualsTheScalarTwin) {
  testing::on_every_target([] {
    for (const size_t d : {1, 7, 16, 33, 64, 100, 128})
      for (const size_t keys : {1, 5, 8, 31, 70})
        for (const bool scattered : {false, true}) {
          Case it(4, 2, d, keys);
          std::vector<float> weights(keys);
          decode_attention(it.args(scattered), weights.data());
          const std::vector<float> got = it.o;
          scalar::decode_attention(it.args(scattered), weights.data());
          // Logits of up to some 50 are rounded by 3e-6, which is the relative error of a weight; values are up to 2.
          for (size_t i = 0; i < got.size(); ++i) ASSERT_NEAR(got[i], it.o[i], 1e-5) << d << " " << keys;
        }
  });
}

TEST(DecodeAttention, SlotsSayWhereKeysAre) {
  Case it(2, 1, 8, 3);
  std::vector<float> weights(3);
  decode_attention(it.args(/*scattered=*/true), weights.data());
  const std::vector<float> scattered = it.o;
  for (size_t j = 0; j < 3; ++j)
    for (size_t i = 0; i < 16; ++i) {
      it.k[j * 16 + i] = Case(2, 1, 8, 3).k[static_cast<size_t>(it.slots[j]) * 16 + i];
      it.v[j * 16 + i] = Case(2, 1, 8, 3).v[static_cast<size_t>(it.slots[j]) * 16 + i];
    }
  decode_attention(it.args(/*scattered=*/false), weights.data());
  EXPECT_EQ(it.o, scattered);
}

TEST(DecodeAttention, LargeLogitsStayFinite) {
  Case it(1, 1, 8, 9);
  for (float& value : it.q) value *= 1e4F;
  std::vector<float> weights(9);
  decode_attention(it.args(true), weights.data());
  for (const float value : it.o) EXPECT_TRUE(std::isfinite(value));
}

}  // namespace
}  // namespace normlab
