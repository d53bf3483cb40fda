// Attention to the encoder's output, and attention of hypotheses that grow by one token per step.
#include "normlab/nn/attention.h"
#include "normlab/nn/beam_state.h"
#include "normlab/nn/observer.h"

namespace normlab {

using torch::Tensor;

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
      const Tensor keys = kv[0].reshape({-1, 1, n_kv_heads_, d_head_});  // without positions
      beams.set_memory(layer_, decoded_keys(keys, call, weights, 0).view(kv[0].sizes()), kv[1]);
    }
    const Tensor q = q_(x_r1c).view({rows, 1, n_heads_, d_head_});
    mixed = beams.attend_memory(layer_, decoded_queries(q, call, weights, 0), call);
  } else {
    const auto parts = qkv_(x_r1c)
                           .view({rows, 1, n_heads_ + 2 * n_kv_heads_, d_head_})
                           .split_with_sizes({n_heads_, n_kv_heads_, n_kv_heads_}, 2);
    const int64_t position = beams.position();
    beams.append(layer_, decoded_keys(parts[1], call, weights, position), parts[2]);
    mixed = beams.attend(layer_, decoded_queries(parts[0], call, weights, position), call);
  }
  return out_(mixed.reshape({rows, 1, n_heads_ * d_head_}));
}

}  // namespace normlab
