// Attention to the encoder's output, and attention of hypotheses that grow by one token per step.
#include "normlab/nn/attention.h"
#include "normlab/nn/beam_state.h"
#include "normlab/nn/observer.h"

namespace normlab {

using torch::Tensor;

namespace {

// PyTorch's powers differ in the last bit between whole vectors and what is left over at the end of a tensor. Rows are
// filled up so that nothing is: the bits of a row must not depend on how many are decoded beside it.
template <class Normalise>
Tensor in_whole_vectors(const Tensor& x_bthd, const Normalise& normalise) {
  constexpr int64_t two_vectors = 16;
  const Tensor rows = x_bthd.reshape({-1, 1, x_bthd.size(2), x_bthd.size(3)});
  const int64_t n = rows.size(0), left_over = n % two_vectors;
  const Tensor whole =
      left_over == 0 ? rows : torch::constant_pad_nd(rows, {0, 0, 0, 0, 0, 0, 0, two_vectors - left_over});
  return normalise(whole).narrow(0, 0, n).reshape(x_bthd.sizes());
}

}  // namespace

Tensor Attention::attend_memory(const Tensor& x_btc, const Pass& pass, const AttentionCall& call,
                                const AttentionWeights& weights) const {
  const Tensor& memory = pass.memory->x_bsc;
  const int64_t b = x_btc.size(0), t = x_btc.size(1), s = memory.size(1);
  const Tensor q = q_(x_btc, pass.sink).view({b, t, n_heads_, d_head_});
  const Tensor kv = kv_(memory, pass.sink).view({b, s, 2 * n_kv_heads_, d_head_});
  AttentionCounts counts{.max_logits = max_logits(pass)};
  if (pass.observer)
    counts.stats = pass.observer->attention(
        {Stack::cross, layer_},
        {{.x_bthd = q, .queries = n_heads_}, {.x_bthd = kv, .keys = n_kv_heads_, .values = n_kv_heads_}}, call, weights,
        pass);
  return out_(cross_attention(q, kv, call, weights, counts).reshape({b, t, n_heads_ * d_head_}), pass.sink);
}

Tensor Attention::decode(const Tensor& x_r1c, BeamState& beams, const AttentionCall& call,
                         const AttentionWeights& weights) const {
  const int64_t rows = x_r1c.size(0);
  Tensor mixed;
  if (kind_ == AttentionKind::cross) {
    if (!beams.has_memory(layer_)) {
      const Tensor& memory = beams.memory().x_bsc;
      const auto kv = kv_(memory).view({memory.size(0), memory.size(1), 2 * n_kv_heads_, d_head_}).chunk(2, 2);
      const auto keys = in_whole_vectors(kv[0], [&](const Tensor& k) { return normalise_keys(k, call, weights, 0); });
      beams.set_memory(layer_, keys, kv[1]);
    }
    const Tensor q = q_(x_r1c).view({rows, 1, n_heads_, d_head_});
    const auto q_hat = in_whole_vectors(q, [&](const Tensor& x) { return normalise_queries(x, call, weights, 0); });
    mixed = beams.attend_memory(layer_, q_hat, call);
  } else {
    const auto parts = qkv_(x_r1c)
                           .view({rows, 1, n_heads_ + 2 * n_kv_heads_, d_head_})
                           .split_with_sizes({n_heads_, n_kv_heads_, n_kv_heads_}, 2);
    const int64_t position = beams.position();
    const auto k_hat =
        in_whole_vectors(parts[1], [&](const Tensor& k) { return normalise_keys(k, call, weights, position); });
    const auto q_hat =
        in_whole_vectors(parts[0], [&](const Tensor& q) { return normalise_queries(q, call, weights, position); });
    beams.append(layer_, k_hat, parts[2]);
    mixed = beams.attend(layer_, q_hat, call);
  }
  return out_(mixed.reshape({rows, 1, n_heads_ * d_head_}));
}

}  // namespace normlab
