#include "normlab/models/decoder_lm.h"

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
#include "normlab/ops/linear.h"
#include "normlab/ops/lp_norm.h"
#include "normlab/ops/precision.h"

namespace normlab {

using torch::Tensor;

DecoderLm::DecoderLm(const ModelConfig& wanted, const NormScheme& scheme, int vocab_size, uint64_t seed,
                     torch::TensorOptions options)
    : config_(for_tensors(wanted, options)),
      scheme_(scheme),
      vocab_size_(vocab_size),
      embedding_(torch::zeros({vocab_size, wanted.d_model}, options)) {
  const ModelConfig& config = config_;
  if (config.positions == Positions::learned) positions_ = torch::zeros({config.seq_len, config.d_model}, options);
  if (config.positions == Positions::sinusoidal || config.positions == Positions::sine)
    positions_ = sinusoids(config.positions, config.seq_len, config.d_model, options);
  if (config.positions == Positions::rope) {
    rope_ = make_rope(config, /*local=*/false, options);
    if (config.window > 0 && config.rope_base_local > 0.0) local_rope_ = make_rope(config, /*local=*/true, options);
  }
  if (config.kernels == Kernels::fused) packed_head_ = std::make_shared<PackedWeight>();
  if (!config.tied_head) head_ = torch::zeros({vocab_size, config.d_model}, options);
  if (scheme.embedding == EmbeddingNorm::scaled)
    embedding_scale_ = torch::full({1}, std::sqrt(double(config.d_model)), options);
  model_gain_ = model_gain(config, scheme, options);
  if (scheme.output_scale == OutputScale::s_z)
    s_z_ = scaled_parameter(vocab_size, {1.0, value_of(scheme.stored_scale, {config.d_head, config.d_model})}, options);
  for (int layer = 0; layer < config.n_layers; ++layer) blocks_.emplace_back(config, scheme, layer, options);
  if (scheme.placement != NormPlacement::post)
    final_norm_ = StreamNorm(scheme, config.d_model, config.bias, config.kernels == Kernels::fused, options);

  if (is_elsewhere(options))
    start_from(DecoderLm(config_, scheme, vocab_size, seed, options.device(torch::kCPU)));
  else
    start(seed);
}

Tensor DecoderLm::rows(const Tensor& table_vc) const {
  return scheme_.embedding == EmbeddingNorm::fixnorm ? lp_normalize(table_vc, 2.0, 1e-12) : table_vc;
}

Tensor DecoderLm::scaled(const Tensor& x) const {
  if (scheme_.embedding == EmbeddingNorm::fixnorm || scheme_.embedding == EmbeddingNorm::sqrt_d)
    return x * std::sqrt(double(config_.d_model));
  return embedding_scale_.defined() ? x * embedding_scale_ : x;
}

Tensor DecoderLm::embed(const Tensor& tokens_bt, int64_t first_position, GradientSink* sink) const {
  const int64_t end = first_position + tokens_bt.size(1);
  if (end > config_.seq_len)
    throw Error("model", concat("got ", end, " tokens, expected at most model.seq_len = ", config_.seq_len, "."));
  const bool fused = config_.kernels == Kernels::fused;
  const Tensor x = scaled(embedding(rows(embedding_), tokens_bt, fused, sink));
  if (!positions_.defined()) return x;
  const Tensor places = torch::arange(first_position, end, tokens_bt.options()).expand_as(tokens_bt);
  return x + embedding(positions_, places, fused, sink);
}

const RopeTable* DecoderLm::rope_of(size_t layer) const {
  if (!rope_.cos.defined()) return nullptr;
  const bool local = local_rope_.cos.defined() && window_of_layer(config_, static_cast<int>(layer)) > 0;
  return local ? &local_rope_ : &rope_;
}

Tensor DecoderLm::hidden(const Tensor& given_bt, const Pass& pass, std::vector<KvCache>* caches) const {
  const Tensor tokens_bt = on_device(given_bt, device());
  const Autocast products(embedding_.device(), config_.dtype == Precision::bfloat16);
  const int64_t first_position = caches ? caches->front().length : 0;
  Stream stream{dropout(embed(tokens_bt, first_position, pass.sink),
                        pass.dropout(config_.dropout, 0, DropoutSite::embedding, tokens_bt.size(1)))};
  const Tensor gain = model_gain_.used();
  for (size_t layer = 0; layer < blocks_.size(); ++layer)
    blocks_[layer](stream, pass, gain, rope_of(layer), caches ? &(*caches)[layer] : nullptr);
  const Tensor y = final_norm_(stream);
  if (pass.observer) pass.observer->see(Site::stream, {pass.stack, config_.n_layers}, stream.x, pass);
  return y;
}

Tensor DecoderLm::logits(const Tensor& tokens_bt, const Pass& pass, std::vector<KvCache>* caches) const {
  const Tensor out = head(hidden(tokens_bt, pass, caches), pass.sink);
  if (pass.observer) pass.observer->see(Site::logits, {pass.stack, config_.n_layers}, out, pass);
  return out;
}

Tensor DecoderLm::head(const Tensor& y_btc, GradientSink* sink) const {
  const Autocast products(embedding_.device(), config_.dtype == Precision::bfloat16);
  const Tensor weight = rows(head_weight());
  Tensor z =
      packed_head_ ? fused_linear(y_btc, weight, Tensor(), packed_head_, sink) : widened(torch::linear(y_btc, weight));
  if (s_z_.defined()) z = z * s_z_.used();
  const double cap = scheme_.output_soft_cap;
  return cap > 0.0 ? (z / cap).tanh() * cap : z;
}

std::shared_ptr<const DecodePlan> DecoderLm::decode_plan() const {
  const torch::NoGradGuard no_grad;
  auto plan = std::make_shared<DecodePlan>();
  plan->tokens_vc = scaled(rows(embedding_));
  plan->positions_tc = positions_;
  plan->seq_len = config_.seq_len;
  for (size_t layer = 0; layer < blocks_.size(); ++layer)
    plan->layers.push_back(blocks_[layer].decoded(model_gain_.used(), rope_of(layer)));
  plan->final_norm = final_norm_.decoded();
  plan->head = {.weight = rows(head_weight())};
  if (s_z_.defined()) plan->head_scale = s_z_.used();
  plan->soft_cap = scheme_.output_soft_cap;
  plan->pack();
  return plan;
}

Tensor DecoderLm::loss(const Tensor& tokens_bt, const Tensor& targets_bt, const Pass& pass) const {
  Tensor scores = logits(tokens_bt, pass).view({-1, vocab_size_});
  const Tensor targets = on_device(targets_bt, device()).reshape({-1});
  // The fused kernel writes over the logits that the z-loss still needs.
  if (pass.training && scheme_.z_loss > 0.0) {
    const Tensor z_loss = scores.logsumexp(-1).square().mean() * scheme_.z_loss;
    return cross_entropy(std::move(scores), targets, /*fused=*/false) + z_loss;
  }
  return cross_entropy(std::move(scores), targets, config_.kernels == Kernels::fused);
}

void DecoderLm::visit(const ParameterVisitor& visitor) {
  visitor("embedding.weight", embedding_, Role::embedding);
  if (embedding_scale_.defined()) visitor("embedding.scale", embedding_scale_, Role::scale);
  if (config_.positions == Positions::learned) visitor("positions.weight", positions_, Role::position);
  if (model_gain_.defined() && scheme_.learn_gain) visitor("qk_gain", model_gain_.stored, Role::qk_gain);
  for (size_t layer = 0; layer < blocks_.size(); ++layer) blocks_[layer].visit(concat("layers.", layer), visitor);
  final_norm_.visit("final_norm", visitor);
  if (head_.defined()) visitor("head.weight", head_, Role::weight);
  if (s_z_.defined()) visitor("s_z", s_z_.stored, Role::scale);
}

}  // namespace normlab
