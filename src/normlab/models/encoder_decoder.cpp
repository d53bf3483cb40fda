#include "normlab/models/encoder_decoder.h"

#include <cmath>

#include "normlab/base/error.h"
#include "normlab/base/text.h"
#include "normlab/models/device.h"
#include "normlab/models/init.h"
#include "normlab/models/sinusoids.h"
#include "normlab/nn/decode_state.h"
#include "normlab/nn/observer.h"
#include "normlab/nn/qk_gain.h"
#include "normlab/ops/cross_entropy.h"
#include "normlab/ops/embedding.h"
#include "normlab/ops/lp_norm.h"
#include "normlab/ops/precision.h"

namespace normlab {
namespace {

using torch::Tensor;

constexpr uint64_t decoder_stream = 0x646563;  // "dec": keeps its dropout apart from that of the encoder's layers

Pass encoder_pass(const Pass& pass, const SourceBatch& source) {
  Pass own = pass;
  own.stack = Stack::encoder;
  own.causal = false;
  own.key_lengths_b = source.lengths_b;
  return own;
}

Pass decoder_pass(const Pass& pass, const Memory& memory) {
  Pass own = pass;
  own.stack = Stack::decoder;
  own.seed = stream_key(pass.seed, decoder_stream);
  own.memory = &memory;
  return own;
}

}  // namespace

OutputVocabulary make_output_vocabulary(const std::vector<bool>& allowed) {
  std::vector<int64_t> ids, places(allowed.size(), -1);
  for (size_t id = 0; id < allowed.size(); ++id) {
    if (!allowed[id]) continue;
    places[id] = static_cast<int64_t>(ids.size());
    ids.push_back(static_cast<int64_t>(id));
  }
  return {torch::tensor(ids, torch::kInt64), torch::tensor(places, torch::kInt64)};
}

TranslationBatch TranslationBatch::slice(int64_t begin, int64_t end) const {
  TranslationBatch part = *this;
  for (Tensor* tensor : {&part.source.tokens_bs, &part.source.lengths_b, &part.inputs_bt, &part.labels_bt})
    *tensor = tensor->slice(0, begin, end);
  return part;
}

EncoderDecoder::EncoderDecoder(const ModelConfig& wanted, const NormScheme& scheme, const TranslatorShape& shape,
                               uint64_t seed, torch::TensorOptions options)
    : config_(for_tensors(wanted, options)),
      shape_(shape),
      scheme_(scheme),
      embedding_(torch::zeros({shape.vocab_size, wanted.d_model}, options)),
      languages_(torch::zeros({shape.n_languages, wanted.d_model}, options)) {
  ModelConfig config = config_;
  if (config.bias) out_bias_ = torch::zeros({shape.vocab_size}, options);
  if (config.positions == Positions::learned) positions_ = torch::zeros({config.seq_len, config.d_model}, options);
  if (config.positions == Positions::sinusoidal || config.positions == Positions::sine)
    positions_ = sinusoids(config.positions, config.seq_len, config.d_model, options);
  if (config.positions == Positions::rope) rope_ = make_rope(config, /*local=*/false, options);
  config.seq_len = shape.length_p975;  // all that a block makes of it is the initial gain
  if (scheme.embedding == EmbeddingNorm::scaled)
    embedding_scale_ = torch::full({1}, std::sqrt(double(config.d_model)), options);
  model_gain_ = model_gain(config, scheme, options);
  for (int layer = 0; layer < shape.encoder_layers; ++layer) encoder_.emplace_back(config, scheme, layer, options);
  for (int layer = 0; layer < config.n_layers; ++layer)
    decoder_.emplace_back(config, scheme, layer, options, /*with_cross=*/true);
  if (scheme.placement != NormPlacement::post)
    for (StreamNorm* norm : {&encoder_norm_, &decoder_norm_})
      *norm = StreamNorm(scheme, config.d_model, config.bias, config.kernels == Kernels::fused, options);

  if (is_elsewhere(options))
    start_from(EncoderDecoder(config_, scheme, shape, seed, options.device(torch::kCPU)));
  else
    start(seed);
}

Tensor EncoderDecoder::words() const {
  return scheme_.embedding == EmbeddingNorm::fixnorm ? lp_normalize(embedding_, 2.0, 1e-12) : embedding_;
}

Tensor EncoderDecoder::scaled(const Tensor& rows) const {
  return embedding_scale_.defined() ? rows * embedding_scale_ : rows * std::sqrt(double(config_.d_model));
}

Tensor EncoderDecoder::embed(const Tensor& words_vc, const Tensor& tokens_bt, int64_t language, int64_t first_position,
                             GradientSink* sink) const {
  const int64_t end = first_position + tokens_bt.size(1);
  if (end > config_.seq_len)
    throw Error("model", concat("got ", end, " tokens, expected at most model.seq_len = ", config_.seq_len, "."));
  const bool fused = config_.kernels == Kernels::fused;
  const Tensor x = scaled(embedding(words_vc, tokens_bt, fused, sink)) + languages_.select(0, language);
  return positions_.defined() ? x + positions_.slice(0, first_position, end) : x;
}

Memory EncoderDecoder::encode(const Tensor& words_vc, const SourceBatch& given, const Pass& pass) const {
  const SourceBatch source{on_device(given.tokens_bs, device()), on_device(given.lengths_b, device()), given.language};
  const Autocast products(embedding_.device(), config_.dtype == Precision::bfloat16);
  const Pass own = encoder_pass(pass, source);
  Stream stream{dropout(embed(words_vc, source.tokens_bs, source.language, 0, pass.sink),
                        own.dropout(config_.dropout, 0, DropoutSite::embedding, source.tokens_bs.size(1)))};
  const Tensor gain = model_gain_.used();
  for (const Block& block : encoder_) block(stream, own, gain, rope());
  const Tensor y = encoder_norm_(stream);
  if (own.observer) own.observer->see(Site::stream, {own.stack, shape_.encoder_layers}, stream.x, own);
  return {y, source.lengths_b};
}

Memory EncoderDecoder::encode(const SourceBatch& source, const Pass& pass) const {
  return encode(words(), source, pass);
}

OutputTables EncoderDecoder::tables_of(const Tensor& words_vc, const OutputVocabulary& outputs) const {
  OutputTables tables;
  tables.words_vc = words_vc;
  const Tensor ids_n = on_device(outputs.ids_n, device());
  tables.head_nc = words_vc.index_select(0, ids_n);
  if (out_bias_.defined()) tables.bias_n = out_bias_.index_select(0, ids_n);
  if (config_.kernels == Kernels::fused) tables.packed_head = std::make_shared<PackedWeight>();
  return tables;
}

Tensor EncoderDecoder::head(const Tensor& y, const OutputTables& tables) const {
  const Tensor z = tables.packed_head ? fused_linear(y, tables.head_nc, tables.bias_n, tables.packed_head)
                                      : widened(torch::linear(y, tables.head_nc, tables.bias_n));
  const double cap = scheme_.output_soft_cap;
  return cap > 0.0 ? (z / cap).tanh() * cap : z;
}

Tensor EncoderDecoder::logits(const TranslationBatch& batch, const Pass& pass) const {
  const Autocast products(embedding_.device(), config_.dtype == Precision::bfloat16);
  const Tensor table = words();
  const Memory memory = encode(table, batch.source, pass);
  const Pass own = decoder_pass(pass, memory);
  Stream stream{dropout(embed(table, on_device(batch.inputs_bt, device()), batch.target_language, 0, pass.sink),
                        own.dropout(config_.dropout, 0, DropoutSite::embedding, batch.inputs_bt.size(1)))};
  const Tensor gain = model_gain_.used();
  for (const Block& block : decoder_) block(stream, own, gain, rope());
  const Tensor y = decoder_norm_(stream);
  if (own.observer) own.observer->see(Site::stream, {own.stack, config_.n_layers}, stream.x, own);
  const Tensor out = head(y, tables_of(table, batch.outputs));
  if (own.observer) own.observer->see(Site::logits, {own.stack, config_.n_layers}, out, own);
  return out;
}

Tensor EncoderDecoder::loss_sum(const TranslationBatch& batch, const Pass& pass) const {
  return loss_sum(batch, pass, pass.training ? shape_.label_smoothing : 0.0);
}

Tensor EncoderDecoder::loss_sum(const TranslationBatch& batch, const Pass& pass, double smoothing) const {
  return cross_entropy_sum(logits(batch, pass).flatten(0, 1), on_device(batch.labels_bt, device()).reshape({-1}),
                           {.fused = config_.kernels == Kernels::fused, .smoothing = smoothing});
}

DecodeTables EncoderDecoder::decode_tables(const OutputVocabulary& outputs, int64_t language) const {
  const torch::NoGradGuard no_grad;
  DecodeTables tables{.tables = tables_of(words(), outputs), .language = language, .plan = nullptr};
  if (config_.kernels == Kernels::fused) tables.plan = decode_plan(tables.tables, language);
  return tables;
}

std::shared_ptr<const DecodePlan> EncoderDecoder::decode_plan(const OutputTables& tables, int64_t language) const {
  auto plan = std::make_shared<DecodePlan>();
  plan->tokens_vc = scaled(tables.words_vc) + languages_.select(0, language);
  plan->positions_tc = positions_;
  plan->seq_len = config_.seq_len;
  for (const Block& block : decoder_) plan->layers.push_back(block.decoded(model_gain_.used(), rope()));
  plan->final_norm = decoder_norm_.decoded();
  plan->head = {.weight = tables.head_nc, .bias = tables.bias_n};
  plan->soft_cap = scheme_.output_soft_cap;
  plan->pack();
  return plan;
}

Tensor EncoderDecoder::step(const Tensor& tokens_r, const DecodeTables& tables, BeamState& beams) const {
  if (DecodeState* planned = beams.planned())
    return planned->read({tokens_r.const_data_ptr<int64_t>(), static_cast<size_t>(tokens_r.numel())});
  const Autocast products(embedding_.device(), config_.dtype == Precision::bfloat16);
  beams.begin_step();
  Pass pass{.memory = &beams.memory(), .beams = &beams};
  const Tensor tokens_r1 = on_device(tokens_r, device()).unsqueeze(1);
  Stream stream{embed(tables.tables.words_vc, tokens_r1, tables.language, beams.position())};
  const Tensor gain = model_gain_.used();
  for (const Block& block : decoder_) block(stream, pass, gain, rope());
  return head(decoder_norm_(stream), tables.tables).squeeze(1);
}

void EncoderDecoder::visit(const ParameterVisitor& visitor) {
  visitor("embedding.weight", embedding_, Role::embedding);
  if (embedding_scale_.defined()) visitor("embedding.scale", embedding_scale_, Role::scale);
  visitor("languages.weight", languages_, Role::language);
  if (out_bias_.defined()) visitor("out_bias", out_bias_, Role::bias);
  if (config_.positions == Positions::learned) visitor("positions.weight", positions_, Role::position);
  if (model_gain_.defined() && scheme_.learn_gain) visitor("qk_gain", model_gain_.stored, Role::qk_gain);
  for (size_t layer = 0; layer < encoder_.size(); ++layer) encoder_[layer].visit(concat("encoder.", layer), visitor);
  encoder_norm_.visit("encoder_norm", visitor);
  for (size_t layer = 0; layer < decoder_.size(); ++layer) decoder_[layer].visit(concat("decoder.", layer), visitor);
  decoder_norm_.visit("decoder_norm", visitor);
}

}  // namespace normlab
