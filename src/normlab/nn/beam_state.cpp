#include "normlab/nn/beam_state.h"

#include <ATen/Parallel.h>

#include <numeric>

#include "normlab/ops/decode.h"

namespace normlab {
namespace {

using torch::Tensor;

constexpr int64_t first_tokens = 16;  // of a hypothesis that there is room for; later twice as many as there are

// Along `dim`, of which all is used, with as much room again.
Tensor grown(const Tensor& old, int64_t dim) {
  const int64_t used = old.size(dim);
  std::vector<int64_t> sizes = old.sizes().vec();
  sizes[static_cast<size_t>(dim)] = 2 * used;
  const Tensor larger = torch::empty(sizes, old.options());
  larger.narrow(dim, 0, used).copy_(old);
  return larger;
}

Tensor to_tensor(const std::vector<int64_t>& index, const Tensor& like) {
  return torch::tensor(index, torch::kInt64).to(like.device());
}

// The keys and values that a row sees; null slots: 0, 1, 2, ...
struct RowKeys {
  const float *k, *v;
  const int32_t* slots;
  int64_t count;
};

// decode_attention for every row.
template <class KeysOf>
Tensor attend_rows(const Tensor& q_r1hd, int64_t key_heads, const AttentionCall& call, const KeysOf& keys_of) {
  const Tensor q = q_r1hd.contiguous(), o = torch::empty_like(q);
  const int64_t heads = q.size(2), d = q.size(3);
  at::parallel_for(0, q.size(0), /*grain_size=*/8, [&](int64_t begin, int64_t end) {
    std::vector<float> weights;
    for (int64_t row = begin; row < end; ++row) {
      const RowKeys kept = keys_of(static_cast<size_t>(row));
      DecodeAttention unit = decode_unit(call, heads, key_heads, d, kept.count);
      unit.k = kept.k, unit.v = kept.v, unit.slots = kept.slots;
      unit.q = q.const_data_ptr<float>() + row * heads * d;
      unit.o = o.mutable_data_ptr<float>() + row * heads * d;
      if (weights.size() < unit.keys) weights.resize(unit.keys);
      decode_attention(unit, weights.data());
    }
  });
  return o;
}

}  // namespace

BeamState::BeamState(Memory memory, size_t n_layers, int64_t beam, bool fused)
    : memory_(std::move(memory)), fused_(fused), layers_(n_layers) {
  const int64_t sentences = memory_.x_bsc.size(0);
  max_rows_ = sentences * beam;
  sentence_of_.resize(static_cast<size_t>(sentences));
  std::iota(sentence_of_.begin(), sentence_of_.end(), int64_t{0});
  kept_ = sentence_of_;
  slots_of_.resize(sentence_of_.size());
}

void BeamState::begin_step() {
  for (size_t row = 0; fused_ && row < slots_of_.size(); ++row)
    slots_of_[row].push_back(static_cast<int32_t>(length_ * max_rows_ + static_cast<int64_t>(row)));
  ++length_;
}

void BeamState::select(const std::vector<int64_t>& parents) {
  std::vector<int64_t> sentences;
  std::vector<std::vector<int32_t>> slots;
  for (const int64_t parent : parents) {
    sentences.push_back(sentence_of_[static_cast<size_t>(parent)]);
    slots.push_back(slots_of_[static_cast<size_t>(parent)]);
  }
  sentence_of_ = std::move(sentences);
  slots_of_ = std::move(slots);
  if (fused_) return;
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
  Layer& at = layers_[static_cast<size_t>(layer)];
  const int64_t h = k_hat_r1hd.size(2), d = k_hat_r1hd.size(3), tokens_dim = fused_ ? 0 : 1;
  const int64_t first = fused_ ? position() * max_rows_ : position();
  if (!at.k.defined()) {
    at.k = fused_ ? torch::empty({first_tokens * max_rows_, h, d}, v_r1hd.options())
                  : torch::empty({rows(), first_tokens, h, d}, v_r1hd.options());
    at.v = torch::empty_like(at.k);
  } else if (first == at.k.size(tokens_dim)) {
    at.k = grown(at.k, tokens_dim), at.v = grown(at.v, tokens_dim);
  }
  if (!fused_) {
    at.k.narrow(1, first, 1).copy_(k_hat_r1hd);
    at.v.narrow(1, first, 1).copy_(v_r1hd);
    return;
  }
  at.k.narrow(0, first, rows()).copy_(k_hat_r1hd.squeeze(1));
  at.v.narrow(0, first, rows()).copy_(v_r1hd.squeeze(1));
}

Tensor BeamState::attend(int layer, const Tensor& q_hat_r1hd, const AttentionCall& call) const {
  const Layer& at = layers_[static_cast<size_t>(layer)];
  if (!fused_) return normlab::attend(q_hat_r1hd, at.k.narrow(1, 0, length_), at.v.narrow(1, 0, length_), call);
  const float *k = at.k.const_data_ptr<float>(), *v = at.v.const_data_ptr<float>();
  return attend_rows(q_hat_r1hd, at.k.size(1), call, [&](size_t row) {
    return RowKeys{k, v, slots_of_[row].data(), static_cast<int64_t>(slots_of_[row].size())};
  });
}

void BeamState::set_memory(int layer, const Tensor& k_hat_bshd, const Tensor& v_bshd) {
  Layer& at = layers_[static_cast<size_t>(layer)];
  at.memory_k = k_hat_bshd.contiguous();
  at.memory_v = v_bshd.contiguous();
}

Tensor BeamState::attend_memory(int layer, const Tensor& q_hat_r1hd, const AttentionCall& call) const {
  const Layer& at = layers_[static_cast<size_t>(layer)];
  const int64_t h = q_hat_r1hd.size(2), d = q_hat_r1hd.size(3);
  if (!fused_) {
    const auto sentences = static_cast<int64_t>(kept_.size());
    AttentionCall own = call;
    own.key_lengths_b = memory_.lengths_b.index_select(0, to_tensor(kept_, memory_.lengths_b));
    const Tensor q = q_hat_r1hd.view({sentences, rows() / sentences, h, d});
    return normlab::attend(q, at.memory_k, at.memory_v, own).reshape({rows(), 1, h, d});
  }
  const float *k = at.memory_k.const_data_ptr<float>(), *v = at.memory_v.const_data_ptr<float>();
  const int64_t* lengths = memory_.lengths_b.const_data_ptr<int64_t>();
  const int64_t sentence_size = at.memory_k.size(1) * at.memory_k.size(2) * d;
  return attend_rows(q_hat_r1hd, at.memory_k.size(2), call, [&](size_t row) {
    const int64_t sentence = sentence_of_[row];
    return RowKeys{k + sentence * sentence_size, v + sentence * sentence_size, nullptr, lengths[sentence]};
  });
}

}  // namespace normlab
