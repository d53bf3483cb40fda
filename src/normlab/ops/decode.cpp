#include "normlab/ops/decode.h"

#include <ATen/Parallel.h>

#include <algorithm>
#include <cmath>

#include "normlab/ops/attention_units.h"
#include "normlab/ops/float_data.h"

namespace normlab {
namespace {

using torch::Tensor;

bool without_gradients(const AttentionCall& call) { return call.fused && !torch::GradMode::is_enabled(); }

// PyTorch's powers differ in the last bit between whole vectors and what is left over at the end of a tensor. Rows are
// filled up so that nothing is.
template <class Normalise>
Tensor in_whole_vectors(const Tensor& x_bthd, const Normalise& normalise) {
  constexpr int64_t two_vectors = 16;
  const Tensor rows = x_bthd.reshape({-1, 1, x_bthd.size(2), x_bthd.size(3)});
  const int64_t n = rows.size(0), left_over = n % two_vectors;
  const Tensor whole =
      left_over == 0 ? rows : torch::constant_pad_nd(rows, {0, 0, 0, 0, 0, 0, 0, two_vectors - left_over});
  return normalise(whole).narrow(0, 0, n).reshape(x_bthd.sizes());
}

// What queries or keys go through on their way to the product, head by head.
class HeadRows {
 public:
  HeadRows(const AttentionCall& call, const Tensor& p, const QkAffineTensors& affine, const Tensor& gain,
           int64_t first_position)
      : transform_(row_transform(call, first_position)), p_(p), affine_(affine), gain_(gain) {}

  // `rows` tokens of one of `heads` heads, from the first position on.
  void operator()(int64_t head, int64_t heads, ConstRows x, int64_t rows, int64_t d, Rows out) const {
    RowTransform own = transform_;
    if (p_.defined()) own.p = data(p_)[p_.numel() == 1 ? 0 : head];
    transform_rows(own, {affine_of(affine_.weight, head, d), affine_of(affine_.bias, head, d)}, x, rows, d, out);
    if (!gain_.defined()) return;
    const bool by_channel = gain_.numel() == heads * d;
    const float* gain = data(gain_) + (gain_.numel() == 1 ? 0 : by_channel ? head * d : head);
    for (int64_t row = 0; row < rows; ++row)
      for (int64_t c = 0; c < d; ++c) out.data[row * out.row_stride + c] *= gain[by_channel ? c : 0];
  }

 private:
  RowTransform transform_;
  Tensor p_;
  QkAffineTensors affine_;
  Tensor gain_;  // undefined for keys
};

HeadRows query_rows(const AttentionCall& call, const AttentionWeights& weights, int64_t first_position) {
  return {call, weights.p, weights.q_affine, weights.gain, first_position};
}
HeadRows key_rows(const AttentionCall& call, const AttentionWeights& weights, int64_t first_position) {
  return {call, weights.p, weights.k_affine, Tensor(), first_position};
}

Tensor transformed(const Tensor& x_r1hd, const HeadRows& rows) {
  const int64_t n = x_r1hd.size(0), heads = x_r1hd.size(2), d = x_r1hd.size(3);
  const Tensor out = torch::empty({n, 1, heads, d}, x_r1hd.options());
  const int64_t from_row = x_r1hd.stride(0), from_head = x_r1hd.stride(2);
  at::parallel_for(0, n, /*grain_size=*/64, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row)
      for (int64_t head = 0; head < heads; ++head)
        rows(head, heads, {data(x_r1hd) + row * from_row + head * from_head, d}, 1, d,
             {mutable_data(out) + (row * heads + head) * d, d});
  });
  return out;
}

// Room for `length` tokens and as many again.
void reserve(KvCache& cache, const Tensor& qkv_bthd, int64_t n_kv_heads, int64_t length) {
  constexpr int64_t fewest = 64;
  if (cache.k_hat_bshd.defined() && length <= cache.k_hat_bshd.size(1)) return;
  for (Tensor* kept : {&cache.k_hat_bshd, &cache.v_bshd}) {
    const Tensor larger = torch::empty({qkv_bthd.size(0), std::max(fewest, 2 * length), n_kv_heads, qkv_bthd.size(3)},
                                       qkv_bthd.options());
    if (cache.length > 0) larger.narrow(1, 0, cache.length).copy_(kept->narrow(1, 0, cache.length));
    *kept = larger;
  }
}

// One buffer per thread, kept from call to call.
float* decode_scratch(size_t floats) {
  thread_local std::vector<float> buffer;
  if (buffer.size() < floats) buffer.resize(floats);
  return buffer.data();
}

Tensor fused_cached_attention(const Tensor& qkv, int64_t n_heads, const AttentionCall& call,
                              const AttentionWeights& weights, KvCache& cache) {
  const int64_t b = qkv.size(0), t = qkv.size(1), d = qkv.size(3), n_kv_heads = (qkv.size(2) - n_heads) / 2;
  const int64_t first = cache.length, row = qkv.size(2) * d, kv_row = n_kv_heads * d, q_row = n_heads * d;
  reserve(cache, qkv, n_kv_heads, first + t);
  const HeadRows queries = query_rows(call, weights, first), keys = key_rows(call, weights, first);
  const int64_t room = cache.k_hat_bshd.size(1) * kv_row;
  const Tensor o = torch::empty({b, t, n_heads, d}, qkv.options());
  at::parallel_for(0, b, 1, [&](int64_t begin, int64_t end) {
    float* const q = decode_scratch(static_cast<size_t>(t * q_row + first + t));
    for (int64_t sequence = begin; sequence < end; ++sequence) {
      const float* const from = data(qkv) + sequence * t * row;
      float *const k = mutable_data(cache.k_hat_bshd) + sequence * room, *const v = mutable_data(cache.v_bshd) +
                                                                                    sequence * room;
      for (int64_t head = 0; head < n_heads; ++head)
        queries(head, n_heads, {from + head * d, row}, t, d, {q + head * d, q_row});
      for (int64_t head = 0; head < n_kv_heads; ++head)
        keys(head, n_kv_heads, {from + q_row + head * d, row}, t, d, {k + first * kv_row + head * d, kv_row});
      for (int64_t i = 0; i < t; ++i) std::copy_n(from + i * row + q_row + kv_row, kv_row, v + (first + i) * kv_row);
      for (int64_t i = 0; i < t; ++i) {
        const int64_t oldest = keys_before_window(call, first + i + 1);
        DecodeAttention unit = decode_unit(call, n_heads, n_kv_heads, d, first + i + 1 - oldest);
        unit.q = q + i * q_row, unit.k = k + oldest * kv_row, unit.v = v + oldest * kv_row;
        unit.o = mutable_data(o) + (sequence * t + i) * q_row;
        decode_attention(unit, q + t * q_row);
      }
    }
  });
  cache.length = first + t;
  return o;
}

}  // namespace

Tensor cached_attention(const Tensor& qkv_bthd, int64_t n_heads, const AttentionCall& call,
                        const AttentionWeights& weights, KvCache& cache) {
  if (without_gradients(call)) return fused_cached_attention(qkv_bthd.contiguous(), n_heads, call, weights, cache);
  const int64_t n_kv_heads = (qkv_bthd.size(2) - n_heads) / 2, first = cache.length;
  const auto parts = qkv_bthd.split_with_sizes({n_heads, n_kv_heads, n_kv_heads}, 2);
  const int64_t t = qkv_bthd.size(1);
  const bool in_place = !torch::GradMode::is_enabled();
  if (in_place) reserve(cache, qkv_bthd, n_kv_heads, first + t);
  const auto append = [&](Tensor& kept, const Tensor& fresh) {
    if (in_place)
      kept.narrow(1, first, t).copy_(fresh);
    else
      kept = first > 0 ? torch::cat({kept.narrow(1, 0, first), fresh}, 1) : fresh;
    return kept.narrow(1, 0, first + t);
  };
  const Tensor k_hat = append(cache.k_hat_bshd, normalise_keys(parts[1], call, weights, first));
  const Tensor v = append(cache.v_bshd, parts[2]);
  cache.length = first + t;
  return attend(normalise_queries(parts[0], call, weights, first), k_hat, v, call);
}

Tensor decoded_queries(const Tensor& q_r1hd, const AttentionCall& call, const AttentionWeights& weights,
                       int64_t position) {
  if (without_gradients(call)) return transformed(q_r1hd, query_rows(call, weights, position));
  return in_whole_vectors(q_r1hd, [&](const Tensor& q) { return normalise_queries(q, call, weights, position); });
}

Tensor decoded_keys(const Tensor& k_r1hd, const AttentionCall& call, const AttentionWeights& weights,
                    int64_t position) {
  if (without_gradients(call)) return transformed(k_r1hd, key_rows(call, weights, position));
  return in_whole_vectors(k_r1hd, [&](const Tensor& k) { return normalise_keys(k, call, weights, position); });
}

int64_t keys_before_window(const AttentionCall& call, int64_t keys) {
  return call.windowed() ? std::max<int64_t>(0, keys - call.form.window) : 0;
}

DecodeAttention decode_unit(const AttentionCall& call, int64_t n_heads, int64_t n_kv_heads, int64_t d, int64_t keys) {
  const double factor = call.form.row_scale == RowScale::log_n ? std::log(static_cast<double>(keys)) : 1.0;
  return {.heads = static_cast<size_t>(n_heads),
          .group = static_cast<size_t>(n_heads / n_kv_heads),
          .d = static_cast<size_t>(d),
          .scale = static_cast<float>(call.form.logit_scale * factor),
          .soft_cap = static_cast<float>(call.form.soft_cap),
          .keys = static_cast<size_t>(keys)};
}

}  // namespace normlab
