// A decoder-only language model: embeddings, blocks, final norm, head. Value type: a copy shares its tensors.
#pragma once

#include <vector>

#include "normlab/nn/block.h"
#include "normlab/nn/weight_constraint.h"

namespace normlab {

class DecoderLm {
 public:
  // `config` resolved; parameters are initialised as a function of `seed` by the table in models/init.cpp.
  DecoderLm(const ModelConfig& config, const NormScheme& scheme, int vocab_size, uint64_t seed,
            torch::TensorOptions options = torch::kFloat32);

  // tokens_bt int64 -> logits_btv. With caches (one per layer) the tokens continue what the caches hold.
  torch::Tensor logits(const torch::Tensor& tokens_bt, const Pass& pass, std::vector<KvCache>* caches = nullptr) const;
  // What the head reads: the stream after the last layer and its norm.
  torch::Tensor hidden(const torch::Tensor& tokens_bt, const Pass& pass, std::vector<KvCache>* caches = nullptr) const;
  // Mean cross-entropy in nats per token; in training with the z-loss where the scheme has one.
  torch::Tensor loss(const torch::Tensor& tokens_bt, const torch::Tensor& targets_bt, const Pass& pass) const;

  // Every tensor of a checkpoint, in a fixed order.
  void visit(const ParameterVisitor& visitor);
  NamedTensors state();
  // The trainable ones among them, and what each is held to after a step.
  NamedTensors parameters();
  std::vector<WeightConstraint> constraints();
  void visit_linears(const LinearVisitor& visitor) const;  // of the blocks
  // What a scheme does after a step besides the constraints: QK-clip, a power iteration of sigma-Reparam.
  void after_step();
  // Lays the weights out for the fused products, until they change: called once per step, before threads share them.
  void pack_weights() const;
  // The same storage behind new leaves, so that threads can run backward on parts of a batch in parallel.
  DecoderLm alias() const;

  const ModelConfig& config() const { return config_; }
  const NormScheme& scheme() const { return scheme_; }
  int vocab_size() const { return vocab_size_; }

 private:
  torch::Tensor rows(const torch::Tensor& table_vc) const;  // of embedding or head as they are used
  torch::Tensor embed(const torch::Tensor& tokens_bt, int64_t first_position) const;
  torch::Tensor head(const torch::Tensor& y_btc) const;

  ModelConfig config_;
  NormScheme scheme_;
  int vocab_size_ = 0;
  torch::Tensor embedding_;        // [v, c]
  torch::Tensor embedding_scale_;  // [1], with norm.embedding = scaled
  torch::Tensor positions_;        // [seq_len, c]: learned, or the sinusoidal constants; undefined with RoPE
  torch::Tensor head_;             // [v, c]; undefined when tied
  ScaledParameter model_gain_;     // [1] when all layers share one gain
  ScaledParameter s_z_;            // [v], or undefined
  std::shared_ptr<PackedWeight> packed_head_;  // null: PyTorch's own product
  RopeTable rope_;
  std::vector<Block> blocks_;
  StreamNorm final_norm_;
};

}  // namespace normlab
