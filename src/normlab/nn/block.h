// One layer: attention, in a decoder with an encoder cross-attention, and MLP, each joined to the residual stream with
// its norm before, after or both, or by a lerp.
#pragma once

#include "normlab/nn/attention.h"
#include "normlab/nn/mlp.h"
#include "normlab/nn/residual.h"
#include "normlab/nn/stream_norm.h"

namespace normlab {

struct DecodeLayer;

class Block {
 public:
  Block() = default;
  Block(const ModelConfig& config, const NormScheme& scheme, int layer, torch::TensorOptions options,
        bool with_cross = false);

  // Runs the stream [b, t, c] through the layer; with model.checkpoint_activations backward runs it again.
  void operator()(Stream& stream, const Pass& pass, const torch::Tensor& model_gain, const RopeTable* rope,
                  KvCache* cache = nullptr) const;
  DecodeLayer decoded(const torch::Tensor& model_gain, const RopeTable* rope) const;
  void visit(const std::string& name, const ParameterVisitor& visitor);
  void visit_linears(const LinearVisitor& visitor) const;
  // What a scheme keeps beside the loss: spectral norms, clipped logits. After the weights are drawn, and after a step.
  void start();
  void after_step(Stack stack, LogitMaxima& maxima);

 private:
  void run(Stream& stream, const Pass& pass, const torch::Tensor& model_gain, const RopeTable* rope,
           KvCache* cache) const;
  void run_twice(Stream& stream, const Pass& pass, const torch::Tensor& model_gain, const RopeTable* rope) const;

  int layer_ = 0;
  double dropout_ = 0.0, mlp_dropout_ = 0.0;
  bool with_cross_ = false, checkpoint_ = false;
  NormPlacement placement_ = NormPlacement::pre;
  StreamNorm attn_norm_, cross_norm_, mlp_norm_;
  StreamNorm attn_branch_norm_, cross_branch_norm_, mlp_branch_norm_;  // of NormPlacement::both
  LerpResidual alpha_attn_, alpha_mlp_;
  Attention attn_, cross_;
  Mlp mlp_;
};

}  // namespace normlab
