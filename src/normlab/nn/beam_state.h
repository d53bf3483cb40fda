// What a decoder remembers of hypotheses that grow in parallel, one token per step: keys and values of every layer, of
// their own tokens and of the encoder's output. Keys are normalised once.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "normlab/nn/pass.h"
#include "normlab/ops/attention.h"

namespace normlab {

class DecodeState;
struct DecodePlan;

class BeamState {
 public:
  // One row per sentence to begin with. With a plan, DecodeState remembers instead.
  BeamState(Memory memory, size_t n_layers, const std::shared_ptr<const DecodePlan>& plan);

  const Memory& memory() const { return memory_; }
  DecodeState* planned() const { return planned_.get(); }  // null without a plan
  int64_t rows() const { return static_cast<int64_t>(sentence_of_.size()); }
  int64_t position() const { return length_ - 1; }  // of the token that is read in this step

  void begin_step() { ++length_; }
  // From the next step on row i continues row parents[i]. Rows of a sentence stay together, as many for each; a
  // sentence without rows is forgotten.
  void select(const std::vector<int64_t>& parents);

  // Of one layer's self-attention: the new token's keys and values, and attention to all tokens of each row.
  void append(int layer, const torch::Tensor& k_hat_r1hd, const torch::Tensor& v_r1hd);
  torch::Tensor attend(int layer, const torch::Tensor& q_hat_r1hd, const AttentionCall& call) const;

  // Of one layer's cross-attention; its keys and values are made in the first step.
  bool has_memory(int layer) const { return layers_[static_cast<size_t>(layer)].memory_k.defined(); }
  void set_memory(int layer, const torch::Tensor& k_hat_bshd, const torch::Tensor& v_bshd);
  torch::Tensor attend_memory(int layer, const torch::Tensor& q_hat_r1hd, const AttentionCall& call) const;

 private:
  struct Layer {
    torch::Tensor k, v;                // [r, t, h, d], with room for more tokens
    torch::Tensor memory_k, memory_v;  // [b, s, h, d]
  };
  void forget_sentences();

  Memory memory_;
  std::shared_ptr<DecodeState> planned_;
  int64_t length_ = 0;
  std::vector<Layer> layers_;
  std::vector<int64_t> sentence_of_;  // each row: its sentence in memory_
  std::vector<int64_t> kept_;         // the sentences that the layers' memory still holds
};

}  // namespace normlab
