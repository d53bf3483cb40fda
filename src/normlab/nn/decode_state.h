// Decoding: a decoder prepared for it, and what it remembers of texts or hypotheses that grow side by side. Keys are
// normalised and rotated once. A text does not depend, to the bit, on those beside it, nor on how many of its tokens
// are read at once, nor on the number of threads.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "normlab/kernels/large_pages.h"
#include "normlab/nn/decode_layer.h"
#include "normlab/nn/pass.h"

namespace normlab {

// A decoder with the weights it had when the plan was made.
struct DecodePlan {
  torch::Tensor tokens_vc;     // what the first layer reads of a token, but for its position
  torch::Tensor positions_tc;  // undefined: positions are rotations
  int64_t seq_len = 0;
  std::vector<DecodeLayer> layers;
  DecodeNorm final_norm;
  DecodeLinear head;
  torch::Tensor head_scale;  // [v] of the logits, or undefined
  double soft_cap = 0.0;     // of the logits; 0: none
  size_t widest = 0;         // channels between two products of a layer
  LargePages packed;

  // Lays all weights out for the products, one after another, in pages as large as the system has: with small ones, a
  // token costs half as much again (docs/kernels.md).
  void pack();
};

class DecodeState {
 public:
  // Texts without a token yet. With a memory, text i is a translation of its sentence i.
  DecodeState(std::shared_ptr<const DecodePlan> plan, size_t texts, const Memory* memory = nullptr);

  size_t texts() const { return slots_of_.size(); }
  // Reads the next counts[i] >= 1 tokens of each text i, which `tokens` has one text after another. Gives the logits
  // [texts, v] after the last of each, until the next call.
  torch::Tensor read(std::span<const int64_t> tokens, std::span<const int64_t> counts);
  // One token of each text.
  torch::Tensor read(std::span<const int64_t> tokens);
  // From now on text i continues text parents[i].
  void select(std::span<const int64_t> parents);
  // Text i begins anew. It must not share tokens with another text.
  void clear(size_t text);

 private:
  void remember(const Memory& memory);
  void make_room(size_t slots);
  void run(size_t first_text, size_t last_text, std::span<const int64_t> tokens, DecodeBuffers& at);
  void embed(int64_t token, int64_t position, float* x) const;

  std::shared_ptr<const DecodePlan> plan_;
  std::vector<std::vector<int32_t>> slots_of_, next_slots_;  // each text: where its tokens are
  std::vector<size_t> sentence_of_, next_sentence_;
  std::vector<int32_t> free_;
  int32_t used_ = 0;  // slots that were ever taken
  std::vector<DecodeKeys> keys_;
  std::vector<DecodeMemory> memory_;
  std::vector<DecodeRow> rows_;    // of the tokens that are read
  std::vector<size_t> first_row_;  // of each text, and the end
  std::vector<int64_t> ones_;
  std::vector<DecodeBuffers> buffers_;  // of each thread
  torch::Tensor logits_;
};

}  // namespace normlab
