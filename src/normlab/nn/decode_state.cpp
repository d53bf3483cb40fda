#include "normlab/nn/decode_state.h"

#include <ATen/Parallel.h>

#include <algorithm>
#include <numeric>

#include "normlab/base/error.h"
#include "normlab/base/text.h"
#include "normlab/kernels/matmul.h"
#include "normlab/ops/float_data.h"

namespace normlab {
namespace {

using torch::Tensor;

constexpr int64_t decode_rows_of_a_thread = 12;  // two tiles of the products

size_t packed_size(const DecodeLinear& linear) {
  constexpr size_t line = 16;  // floats of a cache line, to which packed weights are aligned
  return (packed_floats(linear.in(), linear.out()) + line - 1) / line * line;
}

}  // namespace

void DecodePlan::pack() {
  size_t floats = packed_size(head);
  const auto for_each = [&](const std::function<void(DecodeLinear&)>& visitor) {
    for (DecodeLayer& layer : layers) layer.visit_linears(visitor);
  };
  for_each([&](DecodeLinear& linear) {
    floats += packed_size(linear);
    widest = std::max({widest, linear.in(), linear.out()});
  });
  packed = in_large_pages(floats * sizeof(float));
  float* to = packed.get();
  const auto pack_one = [&](DecodeLinear& linear) {
    pack_matrix(MatrixView{data(linear.weight), linear.out(), linear.in(), linear.in(), 1}.transposed(), to);
    linear.packed = to;
    to += packed_size(linear);
  };
  for_each(pack_one);
  pack_one(head);
}

DecodeState::DecodeState(std::shared_ptr<const DecodePlan> plan, size_t texts, const Memory* memory)
    : plan_(std::move(plan)), slots_of_(texts), sentence_of_(texts), keys_(plan_->layers.size()) {
  std::iota(sentence_of_.begin(), sentence_of_.end(), size_t{0});
  memory_.resize(plan_->layers.size());
  if (memory) remember(*memory);
}

void DecodeState::remember(const Memory& memory) {
  const Tensor x = memory.x_bsc.contiguous(), lengths = memory.lengths_b.contiguous();
  const int64_t s = x.size(1), c = x.size(2);
  const auto length = [&](int64_t sentence) { return lengths.const_data_ptr<int64_t>()[sentence]; };
  for (size_t layer = 0; layer < memory_.size(); ++layer) {
    const DecodeAttend& cross = *plan_->layers[layer].cross;
    const auto h = static_cast<int64_t>(cross.kv_heads), d = static_cast<int64_t>(cross.d);
    memory_[layer] = {torch::empty({x.size(0), s, h, d}), torch::empty({x.size(0), s, h, d}), lengths};
    at::parallel_for(0, x.size(0), 1, [&](int64_t begin, int64_t end) {
      std::vector<float> buffer;
      for (int64_t i = begin; i < end; ++i)
        cross.remember(data(x) + i * s * c, static_cast<size_t>(length(i)),
                       mutable_data(memory_[layer].k) + i * s * h * d, mutable_data(memory_[layer].v) + i * s * h * d,
                       buffer);
    });
  }
}

void DecodeState::make_room(size_t slots) {
  const auto wanted = static_cast<int64_t>(slots);
  if (keys_.front().k.defined() && wanted <= keys_.front().k.size(0)) return;
  constexpr int64_t fewest = 64;
  for (size_t layer = 0; layer < keys_.size(); ++layer)
    for (Tensor* kept : {&keys_[layer].k, &keys_[layer].v}) {
      const DecodeAttend& of = plan_->layers[layer].attn;
      const Tensor larger =
          torch::empty({std::max(fewest, 2 * wanted), static_cast<int64_t>(of.kv_heads), static_cast<int64_t>(of.d)});
      if (kept->defined()) larger.narrow(0, 0, kept->size(0)).copy_(*kept);
      *kept = larger;
    }
}

Tensor DecodeState::read(std::span<const int64_t> tokens) {
  ones_.assign(texts(), 1);
  return read(tokens, ones_);
}

Tensor DecodeState::read(std::span<const int64_t> tokens, std::span<const int64_t> counts) {
  rows_.clear();
  first_row_.assign(1, 0);
  size_t longest = 0;
  for (size_t text = 0; text < texts(); ++text) {
    std::vector<int32_t>& slots = slots_of_[text];
    const auto end = static_cast<int64_t>(slots.size()) + counts[text];
    if (end > plan_->seq_len)
      throw Error("model", concat("got ", end, " tokens, expected at most model.seq_len = ", plan_->seq_len, "."));
    for (int64_t i = 0; i < counts[text]; ++i) {
      rows_.push_back({.position = static_cast<int64_t>(slots.size()), .sentence = sentence_of_[text]});
      slots.push_back(free_.empty() ? used_++ : free_.back());
      if (!free_.empty()) free_.pop_back();
    }
    longest = std::max(longest, slots.size());
    first_row_.push_back(rows_.size());
    for (size_t row = first_row_[text]; row < rows_.size(); ++row) rows_[row].slots = slots.data();
  }
  make_room(static_cast<size_t>(used_));
  if (memory_.front().k.defined()) longest = std::max(longest, static_cast<size_t>(memory_.front().k.size(1)));

  const auto n = static_cast<int64_t>(texts()), v = static_cast<int64_t>(plan_->head.out());
  if (!logits_.defined() || logits_.size(0) != n) logits_ = torch::empty({n, v});
  buffers_.resize(static_cast<size_t>(at::get_num_threads()));
  const int64_t each = std::max<int64_t>(1, static_cast<int64_t>(rows_.size()) / n);
  at::parallel_for(0, n, std::max<int64_t>(1, decode_rows_of_a_thread / each), [&](int64_t begin, int64_t end) {
    const auto first = static_cast<size_t>(begin), last = static_cast<size_t>(end);
    DecodeBuffers& at = buffers_[static_cast<size_t>(at::get_thread_num())];
    at.reserve(first_row_[last] - first_row_[first], plan_->head.in(), plan_->widest, longest);
    run(first, last, tokens, at);
  });
  if (plan_->head_scale.defined()) logits_.mul_(plan_->head_scale);
  if (plan_->soft_cap > 0.0) logits_.div_(plan_->soft_cap).tanh_().mul_(plan_->soft_cap);
  return logits_;
}

void DecodeState::embed(int64_t token, int64_t position, float* x) const {
  const auto c = static_cast<int64_t>(plan_->head.in());
  std::copy_n(data(plan_->tokens_vc) + token * c, c, x);
  if (!plan_->positions_tc.defined()) return;
  const float* place = data(plan_->positions_tc) + position * c;
  for (int64_t i = 0; i < c; ++i) x[i] += place[i];
}

// Whole layers on the rows of some texts, which no other text reads: threads meet only at the end.
void DecodeState::run(size_t first_text, size_t last_text, std::span<const int64_t> tokens, DecodeBuffers& at) {
  const size_t first = first_row_[first_text], n = first_row_[last_text] - first, c = plan_->head.in();
  const std::span<const DecodeRow> rows = std::span(rows_).subspan(first, n);
  for (size_t i = 0; i < n; ++i) embed(tokens[first + i], rows[i].position, at.x.data() + i * c);
  at.pending = false;
  for (size_t layer = 0; layer < plan_->layers.size(); ++layer)
    plan_->layers[layer](rows, keys_[layer], memory_[layer], at);
  // Only what follows a text's last token is asked for.
  size_t wanted = 0;
  for (size_t text = first_text; text < last_text; ++text, ++wanted)
    for (std::vector<float>* buffer : {&at.x, &at.branch})
      std::copy_n(buffer->data() + (first_row_[text + 1] - 1 - first) * c, c, buffer->data() + wanted * c);
  plan_->final_norm(wanted, c, at.x.data(), at.pending ? at.branch.data() : nullptr, at.normed.data(),
                    at.statistics.data());
  plan_->head(at.normed.data(), wanted, mutable_data(logits_) + first_text * plan_->head.out());
}

void DecodeState::select(std::span<const int64_t> parents) {
  next_slots_.resize(parents.size());
  next_sentence_.resize(parents.size());
  for (size_t text = 0; text < parents.size(); ++text) {
    const auto parent = static_cast<size_t>(parents[text]);
    next_slots_[text].assign(slots_of_[parent].begin(), slots_of_[parent].end());
    next_sentence_[text] = sentence_of_[parent];
  }
  slots_of_.swap(next_slots_);
  sentence_of_.swap(next_sentence_);
}

void DecodeState::clear(size_t text) {
  free_.insert(free_.end(), slots_of_[text].begin(), slots_of_[text].end());
  slots_of_[text].clear();
}

}  // namespace normlab
