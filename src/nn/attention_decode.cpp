// Attention to the encoder's output, and attention of hypotheses that grow by a token a step.
#include "nn/attention.h"
#include "nn/beam_state.h"

namespace normlab {

using torch::Tensor;

Tensor Attention::attend_memory(const Tensor& x_btc, const Memory& memory, const AttentionForm& how) const {
  const int64_t b = x_btc.size(0), t = x_btc.size(1), s = memory.x_bsc.size(1);
  const Tensor q = q_(x_btc).view({b, t, n_heads_, d_head_});
  const Tensor kv = kv_(memory.x_bsc).view({b, s, 2 * n_kv_heads_, d_head_});
  return out_(cross_attention(q, kv, how).reshape({b, t, n_heads_ * d_head_}));
}

Tensor Attention::decode(const Tensor& x_r1c, BeamState& beams, const AttentionForm& how) const {
  const int64_t rows = x_r1c.size(0);
  Tensor mixed;
  if (kind_ == AttentionKind::cross) {
    if (!beams.has_memory(layer_)) {
      const Tensor& memory = beams.memory().x_bsc;
      const auto kv = kv_(memory).view({memory.size(0), memory.size(1), 2 * n_kv_heads_, d_head_}).chunk(2, 2);
      beams.set_memory(layer_, normalise_keys(kv[0], how, 0), kv[1]);
    }
    const Tensor q = q_(x_r1c).view({rows, 1, n_heads_, d_head_});
    mixed = beams.attend_memory(layer_, normalise_queries(q, how, 0), how);
  } else {
    const auto parts = qkv_(x_r1c)
                           .view({rows, 1, n_heads_ + 2 * n_kv_heads_, d_head_})
                           .split_with_sizes({n_heads_, n_kv_heads_, n_kv_heads_}, 2);
    beams.append(layer_, normalise_keys(parts[1], how, beams.position()), parts[2]);
    mixed = beams.attend(layer_, normalise_queries(parts[0], how, beams.position()), how);
  }
  return out_(mixed.reshape({rows, 1, n_heads_ * d_head_}));
}

}  // namespace normlab
