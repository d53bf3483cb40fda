#include "normlab/ops/decode.h"

#include <algorithm>

namespace normlab {
namespace {

using torch::Tensor;

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

}  // namespace

Tensor cached_attention(const Tensor& qkv_bthd, int64_t n_heads, const AttentionCall& call,
                        const AttentionWeights& weights, KvCache& cache) {
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
  return in_whole_vectors(q_r1hd, [&](const Tensor& q) { return normalise_queries(q, call, weights, position); });
}

Tensor decoded_keys(const Tensor& k_r1hd, const AttentionCall& call, const AttentionWeights& weights,
                    int64_t position) {
  return in_whole_vectors(k_r1hd, [&](const Tensor& k) { return normalise_keys(k, call, weights, position); });
}

}  // namespace normlab
