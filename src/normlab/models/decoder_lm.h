// A decoder-only language model: embeddings, blocks, final norm, head. Value type: a copy shares its tensors.
#pragma once

#include <array>
#include <vector>

#include "normlab/models/block_model.h"

namespace normlab {

struct DecodePlan;

class DecoderLm : public BlockModel<DecoderLm> {
 public:
  // `config` resolved; parameters are initialised as a function of `seed` by the table in models/init.cpp.
  DecoderLm(const ModelConfig& config, const NormScheme& scheme, int vocab_size, uint64_t seed,
            torch::TensorOptions options = torch::kFloat32);

  // tokens_bt int64 -> logits_btv. With caches (one per layer) the tokens continue what the caches hold.
  torch::Tensor logits(const torch::Tensor& tokens_bt, const Pass& pass, std::vector<KvCache>* caches = nullptr) const;
  // What the head reads: the stream after the last layer and its norm.
  torch::Tensor hidden(const torch::Tensor& tokens_bt, const Pass& pass, std::vector<KvCache>* caches = nullptr) const;
  // For nn/decode_state.h, of the weights as they are now; with fused kernels only.
  std::shared_ptr<const DecodePlan> decode_plan() const;
  // Mean cross-entropy in nats per token; in training with the z-loss where the scheme has one.
  torch::Tensor loss(const torch::Tensor& tokens_bt, const torch::Tensor& targets_bt, const Pass& pass) const;

  // Shows every tensor of a checkpoint, in a fixed order.
  void visit(const ParameterVisitor& visitor);

  const ModelConfig& config() const { return config_; }
  const NormScheme& scheme() const { return scheme_; }
  int vocab_size() const { return vocab_size_; }

 private:
  friend class BlockModel<DecoderLm>;
  auto stacks() { return std::array{std::pair(Stack::layers, &blocks_)}; }
  auto stacks() const { return std::array{std::pair(Stack::layers, &blocks_)}; }
  PackedProducts packed_outside_blocks() const { return {{head_weight(), packed_head_.get()}}; }

  const torch::Tensor& head_weight() const { return head_.defined() ? head_ : embedding_; }
  torch::Tensor rows(const torch::Tensor& table_vc) const;  // of embedding or head as they are used
  torch::Tensor scaled(const torch::Tensor& rows) const;    // embeddings as they enter the stream
  torch::Tensor embed(const torch::Tensor& tokens_bt, int64_t first_position, GradientSink* sink) const;
  const RopeTable* rope_of(size_t layer) const;  // null: none
  torch::Tensor head(const torch::Tensor& y_btc, GradientSink* sink) const;

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
  RopeTable rope_, local_rope_;                // of layers with a window, where they have their own
  std::vector<Block> blocks_;
  StreamNorm final_norm_;
};

}  // namespace normlab
