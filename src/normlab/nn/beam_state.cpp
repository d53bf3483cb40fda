#include "normlab/nn/beam_state.h"

#include <numeric>

#include "normlab/nn/decode_state.h"

namespace normlab {
namespace {

using torch::Tensor;

// Tokens, all of which are used, and room for as many again.
Tensor with_room_again(const Tensor& old_rthd) {
  std::vector<int64_t> sizes = old_rthd.sizes().vec();
  sizes[1] *= 2;
  const Tensor larger = torch::empty(sizes, old_rthd.options());
  larger.narrow(1, 0, old_rthd.size(1)).copy_(old_rthd);
  return larger;
}

Tensor to_tensor(const std::vector<int64_t>& index, const Tensor& like) {
  return torch::tensor(index, torch::kInt64).to(like.device());
}

}  // namespace

BeamState::BeamState(Memory memory, size_t n_layers, const std::shared_ptr<const DecodePlan>& plan)
    : memory_(std::move(memory)), layers_(n_layers) {
  sentence_of_.resize(static_cast<size_t>(memory_.x_bsc.size(0)));
  std::iota(sentence_of_.begin(), sentence_of_.end(), int64_t{0});
  kept_ = sentence_of_;
  if (plan) planned_ = std::make_shared<DecodeState>(plan, sentence_of_.size(), &memory_);
}

void BeamState::select(const std::vector<int64_t>& parents) {
  if (planned_) return planned_->select(parents);
  std::vector<int64_t> sentences;
  for (const int64_t parent : parents) sentences.push_back(sentence_of_[static_cast<size_t>(parent)]);
  sentence_of_ = std::move(sentences);
  for (Layer& layer : layers_) {
    const Tensor index = to_tensor(parents, layer.k);
    layer.k = layer.k.index_select(0, index);
    layer.v = layer.v.index_select(0, index);
  }
  forget_sentences();
}

void BeamState::forget_sentences() {
  std::vector<int64_t> kept, places;
  for (size_t place = 0; place < kept_.size(); ++place)
    for (const int64_t sentence : sentence_of_)
      if (sentence == kept_[place]) {
        kept.push_back(sentence);
        places.push_back(static_cast<int64_t>(place));
        break;
      }
  if (kept.size() == kept_.size()) return;
  kept_ = std::move(kept);
  for (Layer& layer : layers_) {
    const Tensor index = to_tensor(places, layer.memory_k);
    layer.memory_k = layer.memory_k.index_select(0, index);
    layer.memory_v = layer.memory_v.index_select(0, index);
  }
}

void BeamState::append(int layer, const Tensor& k_hat_r1hd, const Tensor& v_r1hd) {
  constexpr int64_t first_tokens = 16;
  Layer& at = layers_[static_cast<size_t>(layer)];
  if (!at.k.defined()) {
    at.k = torch::empty({rows(), first_tokens, k_hat_r1hd.size(2), k_hat_r1hd.size(3)}, v_r1hd.options());
    at.v = torch::empty_like(at.k);
  } else if (position() == at.k.size(1)) {
    at.k = with_room_again(at.k), at.v = with_room_again(at.v);
  }
  at.k.narrow(1, position(), 1).copy_(k_hat_r1hd);
  at.v.narrow(1, position(), 1).copy_(v_r1hd);
}

Tensor BeamState::attend(int layer, const Tensor& q_hat_r1hd, const AttentionCall& call) const {
  const Layer& at = layers_[static_cast<size_t>(layer)];
  return normlab::attend(q_hat_r1hd, at.k.narrow(1, 0, length_), at.v.narrow(1, 0, length_), call);
}

void BeamState::set_memory(int layer, const Tensor& k_hat_bshd, const Tensor& v_bshd) {
  Layer& at = layers_[static_cast<size_t>(layer)];
  at.memory_k = k_hat_bshd.contiguous();
  at.memory_v = v_bshd.contiguous();
}

Tensor BeamState::attend_memory(int layer, const Tensor& q_hat_r1hd, const AttentionCall& call) const {
  const Layer& at = layers_[static_cast<size_t>(layer)];
  const int64_t h = q_hat_r1hd.size(2), d = q_hat_r1hd.size(3), sentences = static_cast<int64_t>(kept_.size());
  AttentionCall own = call;
  own.key_lengths_b = memory_.lengths_b.index_select(0, to_tensor(kept_, memory_.lengths_b));
  const Tensor q = q_hat_r1hd.view({sentences, rows() / sentences, h, d});
  return normlab::attend(q, at.memory_k, at.memory_v, own).reshape({rows(), 1, h, d});
}

}  // namespace normlab
