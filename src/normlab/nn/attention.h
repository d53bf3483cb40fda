// Multi-head attention with normalised queries and keys: projection, normalised attention, output projection.
#pragma once

#include <vector>

#include "normlab/config/model_config.h"
#include "normlab/nn/linear.h"
#include "normlab/nn/logit_maxima.h"
#include "normlab/nn/pass.h"
#include "normlab/nn/scaled_parameter.h"
#include "normlab/ops/decode.h"

namespace normlab {

enum class AttentionKind { self, cross };  // cross: queries of the stream, keys and values of Pass::memory

struct DecodeAttend;

class Attention {
 public:
  Attention() = default;
  Attention(const ModelConfig& config, const NormScheme& scheme, int layer, torch::TensorOptions options,
            AttentionKind kind = AttentionKind::self);

  // `model_gain` is the gain that all layers share, undefined unless the scheme has one; `rope` may be null.
  torch::Tensor operator()(const torch::Tensor& x_btc, const Pass& pass, const torch::Tensor& model_gain,
                           const RopeTable* rope, KvCache* cache = nullptr) const;
  DecodeAttend decoded(const torch::Tensor& model_gain, const RopeTable* rope) const;
  void visit(const std::string& name, const ParameterVisitor& visitor);
  void visit_linears(const LinearVisitor& visitor) const;
  // QK-clip: scales W_q and W_k of heads whose logits went above the limit.
  void clip_logits(const MaxLogits& largest);

 private:
  void scale_head(Linear& map, int64_t head, double factor);
  AttentionCall call_of(const Pass& pass, const RopeTable* rope, int64_t t) const;
  // The learned values as they are used.
  AttentionWeights weights(const torch::Tensor& model_gain) const;
  // Where the pass wants the largest logits of each head; null: not wanted.
  MaxLogits* max_logits(const Pass& pass) const {
    return pass.maxima ? pass.maxima->at({kind_ == AttentionKind::cross ? Stack::cross : pass.stack, layer_}) : nullptr;
  }
  torch::Tensor attend_memory(const torch::Tensor& x_btc, const Pass& pass, const AttentionCall& call,
                              const AttentionWeights& weights) const;
  torch::Tensor decode(const torch::Tensor& x_r1c, BeamState& beams, const AttentionCall& call,
                       const AttentionWeights& weights) const;

  AttentionKind kind_ = AttentionKind::self;
  int layer_ = 0;
  int64_t n_heads_ = 0, n_kv_heads_ = 0, d_head_ = 0;
  double dropout_ = 0.0;
  bool learn_gain_ = true, fused_ = false;
  double qk_clip_ = 0.0;
  GainOn gain_on_ = GainOn::queries;
  AttentionForm form_;
  Linear qkv_;     // rows: all queries, all keys, all values
  Linear q_, kv_;  // of cross-attention, instead
  Linear out_;
  QkAffineTensors q_affine_, k_affine_;
  ScaledParameter gain_;  // [1], [h] or [h * d]; undefined when shared by the model or absent
  torch::Tensor raw_p_;   // p = 1 + softplus(raw_p); undefined when p is fixed
};

}  // namespace normlab
