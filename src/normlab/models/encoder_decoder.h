// A translator: encoder and decoder of the same blocks, one table of subwords for input and output. Value type: a copy
// shares its tensors.
//
//   x = scale E[token] + language + position         scale = sqrt(d_model); rows of E have norm 1 with FixNorm
//   logits = y E'^T + b                              E': the rows of E that the target language has
#pragma once

#include <array>
#include <vector>

#include "normlab/models/block_model.h"
#include "normlab/nn/beam_state.h"

namespace normlab {

// What a translator knows beyond a ModelConfig, of which n_layers are the decoder's.
struct TranslatorShape {
  int vocab_size = 0, n_languages = 2, encoder_layers = 0;
  int length_p975 = 0;           // L of the initial gain; positions reach to ModelConfig::seq_len
  double label_smoothing = 0.0;  // of the training loss
};

// The subwords that a language may output.
struct OutputVocabulary {
  torch::Tensor ids_n;    // int64, ascending
  torch::Tensor place_v;  // int64: where a subword is among them, -1 for one that is not
};
OutputVocabulary make_output_vocabulary(const std::vector<bool>& allowed);

struct SourceBatch {
  torch::Tensor tokens_bs, lengths_b;  // int64
  int64_t language = 0;
};

struct TranslationBatch {
  SourceBatch source;
  torch::Tensor inputs_bt, labels_bt;  // int64; a label is a place in `outputs`, -1 for padding
  int64_t target_language = 1;
  OutputVocabulary outputs;

  int64_t rows() const { return inputs_bt.size(0); }
  int64_t row_tokens() const { return source.tokens_bs.size(1) + inputs_bt.size(1); }
  int64_t words() const { return labels_bt.ge(0).sum().item<int64_t>(); }
  TranslationBatch slice(int64_t begin, int64_t end) const;
};

// The table of subwords as it is used, and the rows of it that can be output.
struct OutputTables {
  torch::Tensor words_vc, head_nc, bias_n;
  std::shared_ptr<PackedWeight> packed_head;  // null: PyTorch's own product
};

// What many steps of decoding into one language share, made once.
struct DecodeTables {
  OutputTables tables;
  int64_t language = 1;
  std::shared_ptr<const DecodePlan> plan;  // of the fused kernels; null: PyTorch's operators
};

class EncoderDecoder : public BlockModel<EncoderDecoder> {
 public:
  EncoderDecoder(const ModelConfig& config, const NormScheme& scheme, const TranslatorShape& shape, uint64_t seed,
                 torch::TensorOptions options = torch::kFloat32);

  Memory encode(const SourceBatch& source, const Pass& pass) const;
  // [b, t, n] of the n subwords that the target language has.
  torch::Tensor logits(const TranslationBatch& batch, const Pass& pass) const;
  // Cross-entropy in nats summed over the labels, smoothed in training.
  torch::Tensor loss_sum(const TranslationBatch& batch, const Pass& pass) const;
  // With a smoothing of the caller's.
  torch::Tensor loss_sum(const TranslationBatch& batch, const Pass& pass, double smoothing) const;

  // Decoding: the tokens_r of all rows of `beams` enter, logits_rn come out.
  DecodeTables decode_tables(const OutputVocabulary& outputs, int64_t language) const;
  torch::Tensor step(const torch::Tensor& tokens_r, const DecodeTables& tables, BeamState& beams) const;

  // Shows every tensor of a checkpoint, in a fixed order.
  void visit(const ParameterVisitor& visitor);

  const ModelConfig& config() const { return config_; }
  const NormScheme& scheme() const { return scheme_; }
  const TranslatorShape& shape() const { return shape_; }
  size_t decoder_layers() const { return decoder_.size(); }

 private:
  friend class BlockModel<EncoderDecoder>;
  auto stacks() { return std::array{std::pair(Stack::encoder, &encoder_), std::pair(Stack::decoder, &decoder_)}; }
  auto stacks() const { return std::array{std::pair(Stack::encoder, &encoder_), std::pair(Stack::decoder, &decoder_)}; }
  PackedProducts packed_outside_blocks() const { return {}; }  // the head has other rows in each batch

  torch::Tensor words() const;
  torch::Tensor scaled(const torch::Tensor& rows) const;  // embeddings as they are added to the positions
  torch::Tensor embed(const torch::Tensor& words_vc, const torch::Tensor& tokens_bt, int64_t language,
                      int64_t first_position, GradientSink* sink = nullptr) const;
  Memory encode(const torch::Tensor& words_vc, const SourceBatch& source, const Pass& pass) const;
  torch::Tensor head(const torch::Tensor& y, const OutputTables& tables) const;
  OutputTables tables_of(const torch::Tensor& words_vc, const OutputVocabulary& outputs) const;
  std::shared_ptr<const DecodePlan> decode_plan(const OutputTables& tables, int64_t language) const;
  const RopeTable* rope() const { return rope_.cos.defined() ? &rope_ : nullptr; }

  ModelConfig config_;
  TranslatorShape shape_;
  NormScheme scheme_;
  torch::Tensor embedding_;        // [v, c]
  torch::Tensor embedding_scale_;  // [1], with norm.embedding = scaled
  torch::Tensor languages_;        // [n_languages, c]
  torch::Tensor out_bias_;         // [v]; undefined without biases
  torch::Tensor positions_;        // [seq_len, c]: learned, or constants; undefined with RoPE
  ScaledParameter model_gain_;     // [1] when all layers share one gain
  RopeTable rope_;
  std::vector<Block> encoder_, decoder_;
  StreamNorm encoder_norm_, decoder_norm_;
};

}  // namespace normlab
