#include "models/decoder_lm.h"

#include <ATen/Parallel.h>

#include <cmath>

#include "base/error.h"
#include "base/text.h"
#include "models/init.h"
#include "models/sinusoids.h"
#include "ops/cross_entropy.h"
#include "ops/embedding.h"
#include "ops/linear.h"
#include "ops/lp_norm.h"

namespace normlab {
namespace {

using torch::Tensor;

constexpr int embedding_site = 3;  // of dropout, in layer 0

Tensor unit_rows(const Tensor& table) { return lp_normalize(table, 2.0, 1e-12); }

// The fused kernels are for float32 on the CPU.
ModelConfig for_tensors(ModelConfig config, torch::TensorOptions options) {
  if (options.dtype() != torch::kFloat32 || options.device() != torch::kCPU) config.kernels = Kernels::composite;
  return config;
}

}  // namespace

DecoderLm::DecoderLm(const ModelConfig& wanted, const NormScheme& scheme, int vocab_size, uint64_t seed,
                     torch::TensorOptions options)
    : config_(for_tensors(wanted, options)),
      vocab_size_(vocab_size),
      learn_gain_(scheme.learn_gain),
      embedding_norm_(scheme.embedding),
      embedding_(torch::zeros({vocab_size, wanted.d_model}, options)) {
  const ModelConfig& config = config_;
  if (config.positions == Positions::learned) positions_ = torch::zeros({config.seq_len, config.d_model}, options);
  if (config.positions == Positions::sinusoidal || config.positions == Positions::sine)
    positions_ = sinusoids(config.positions, config.seq_len, config.d_model, options);
  if (config.positions == Positions::rope)
    rope_ = make_rope(config.seq_len, config.d_head, config.rope_base, config.rope_pairing, options);
  if (config.kernels == Kernels::fused) packed_head_ = std::make_shared<PackedWeight>();
  if (!config.tied_head) head_ = torch::zeros({vocab_size, config.d_model}, options);
  if (scheme.gain == GainSharing::model)
    model_gain_ = torch::full({1}, initial_gain(scheme, {config.d_head, config.n_heads, config.seq_len}), options);
  for (int layer = 0; layer < config.n_layers; ++layer) blocks_.emplace_back(config, scheme, layer, options);
  if (scheme.placement == NormPlacement::pre)
    final_norm_ = StreamNorm(scheme, config.d_model, config.bias, config.kernels == Kernels::fused, options);

  initialise([this](const ParameterVisitor& visitor) { visit(visitor); }, config, scheme, seed);
  visit([](const std::string&, Tensor& tensor, Role) { tensor.requires_grad_(true); });
}

Tensor DecoderLm::embed(const Tensor& tokens_bt, int64_t first_position) const {
  const int64_t end = first_position + tokens_bt.size(1);
  if (end > config_.seq_len)
    throw Error("model", str("got ", end, " tokens, expected at most model.seq_len = ", config_.seq_len, "."));
  const bool fused = config_.kernels == Kernels::fused;
  const Tensor x = embedding_norm_ == EmbeddingNorm::fixnorm
                       ? embedding(unit_rows(embedding_), tokens_bt, fused) * std::sqrt(double(config_.d_model))
                       : embedding(embedding_, tokens_bt, fused);
  if (!positions_.defined()) return x;
  return x + embedding(positions_, torch::arange(first_position, end, tokens_bt.options()).expand_as(tokens_bt), fused);
}

Tensor DecoderLm::logits(const Tensor& tokens_bt, const Pass& pass, std::vector<KvCache>* caches) const {
  const int64_t first_position = caches ? caches->front().length() : 0;
  Stream stream{
      dropout(embed(tokens_bt, first_position), pass.dropout(config_.dropout, 0, embedding_site, tokens_bt.size(1)))};
  const RopeTable* rope = rope_.cos.defined() ? &rope_ : nullptr;
  for (size_t layer = 0; layer < blocks_.size(); ++layer)
    blocks_[layer](stream, pass, model_gain_, rope, caches ? &(*caches)[layer] : nullptr);
  const Tensor y = final_norm_(stream), stored = head_.defined() ? head_ : embedding_;
  const Tensor head = embedding_norm_ == EmbeddingNorm::fixnorm ? unit_rows(stored) : stored;
  return packed_head_ ? fused_linear(y, head, Tensor(), packed_head_) : torch::linear(y, head);
}

Tensor DecoderLm::loss(const Tensor& tokens_bt, const Tensor& targets_bt, const Pass& pass) const {
  Tensor scores = logits(tokens_bt, pass).view({-1, vocab_size_});
  return cross_entropy(std::move(scores), targets_bt.reshape({-1}), config_.kernels == Kernels::fused);
}

void DecoderLm::visit(const ParameterVisitor& visitor) {
  visitor("embedding.weight", embedding_, Role::embedding);
  if (config_.positions == Positions::learned) visitor("positions.weight", positions_, Role::position);
  if (model_gain_.defined() && learn_gain_) visitor("qk_gain", model_gain_, Role::qk_gain);
  for (size_t layer = 0; layer < blocks_.size(); ++layer) blocks_[layer].visit(str("layers.", layer), visitor);
  final_norm_.visit("final_norm", visitor);
  if (head_.defined()) visitor("head.weight", head_, Role::weight);
}

NamedTensors DecoderLm::parameters() {
  NamedTensors list;
  visit([&list](const std::string& name, Tensor& tensor, Role) { list.emplace_back(name, tensor); });
  return list;
}

void DecoderLm::pack_weights() const {
  if (config_.kernels != Kernels::fused) return;
  std::vector<std::pair<Tensor, PackedWeight*>> list = {{head_.defined() ? head_ : embedding_, packed_head_.get()}};
  for (const Block& block : blocks_)
    block.visit_linears([&](const Linear& linear) { list.emplace_back(linear.weight, linear.packed.get()); });
  at::parallel_for(0, static_cast<int64_t>(list.size()), 1, [&](int64_t begin, int64_t end) {
    for (auto i = static_cast<size_t>(begin); i < static_cast<size_t>(end); ++i) list[i].second->pack(list[i].first);
  });
}

DecoderLm DecoderLm::alias() const {
  DecoderLm copy = *this;
  copy.visit([](const std::string&, Tensor& tensor, Role) { tensor = tensor.detach().requires_grad_(true); });
  return copy;
}

}  // namespace normlab
