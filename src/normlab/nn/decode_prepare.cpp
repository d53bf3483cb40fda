// The modules as decoding runs them: every value that is computed from parameters is computed here, once.
#include "normlab/nn/block.h"
#include "normlab/nn/decode_layer.h"

namespace normlab {

using torch::Tensor;

DecodeLinear Linear::decoded() const {
  DecodeLinear out{.weight = weight, .bias = bias};
  if (gamma.defined()) out.factor = (gamma / sigma()).item<float>();
  return out;
}

DecodeNorm StreamNorm::decoded() const { return {form_, with_factor(weights_, form_.factor)}; }

DecodeJoin LerpResidual::decoded(int64_t d_model) const {
  if (!defined()) return {};
  const Factors of = factors();
  const auto by_channel = [&](const Tensor& factor) {
    return factor.defined() ? factor.expand({d_model}).contiguous() : factor;
  };
  return {.kind = kind_, .first = first_, .stream = by_channel(of.stream), .branch = by_channel(of.branch)};
}

DecodeAttend Attention::decoded(const Tensor& model_gain, const RopeTable* rope) const {
  const AttentionWeights used = weights(model_gain);
  const bool self = kind_ == AttentionKind::self;
  const RopeTable* table = self ? rope : nullptr;
  DecodeAttend out;
  out.in = (self ? qkv_ : q_).decoded(), out.out = out_.decoded();
  if (!self) out.memory = kv_.decoded();
  out.queries = {form_, table, {.p = used.p, .gain = used.gain, .affine = used.q_affine}, n_heads_, d_head_};
  out.keys = {form_, table, {.p = used.p, .gain = {}, .affine = used.k_affine}, n_kv_heads_, d_head_};
  out.form = form_;
  out.heads = static_cast<size_t>(n_heads_), out.kv_heads = static_cast<size_t>(n_kv_heads_);
  out.d = static_cast<size_t>(d_head_);
  return out;
}

DecodeMlp Mlp::decoded() const {
  DecodeMlp out{in_.decoded(), out_.decoded(), activation_, scale()};
  out.out.factor *= static_cast<float>(output_scale_);
  if (output_scale_ != 1.0 && out.out.bias.defined()) out.out.bias = out.out.bias * output_scale_;
  return out;
}

DecodeLayer Block::decoded(const Tensor& model_gain, const RopeTable* rope) const {
  DecodeLayer out;
  out.placement = placement_;
  out.attn_norm = attn_norm_.decoded(), out.mlp_norm = mlp_norm_.decoded();
  out.attn_branch_norm = attn_branch_norm_.decoded(), out.mlp_branch_norm = mlp_branch_norm_.decoded();
  out.attn = attn_.decoded(model_gain, rope), out.mlp = mlp_.decoded();
  const auto d_model = static_cast<int64_t>(out.attn.in.in());
  out.attn_join = alpha_attn_.decoded(d_model), out.mlp_join = alpha_mlp_.decoded(d_model);
  if (!with_cross_) return out;
  out.cross_norm = cross_norm_.decoded(), out.cross_branch_norm = cross_branch_norm_.decoded();
  out.cross = cross_.decoded(model_gain, nullptr);
  return out;
}

}  // namespace normlab
