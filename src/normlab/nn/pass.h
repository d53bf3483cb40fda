// What a forward pass needs to know besides its input.
#pragma once

#include <cstdint>

#include "normlab/ops/dropout.h"
#include "normlab/record/place.h"

namespace normlab {

class BeamState;
class GradientSink;
class LogitMaxima;
class Observer;

// The encoder's output, which the cross-attention of a decoder reads.
struct Memory {
  torch::Tensor x_bsc;
  torch::Tensor lengths_b;  // int64; what comes after them is padding
};

// Where dropout acts in a layer; the numbers are part of the keys of its draws. That of the embedding is in layer 0.
enum class DropoutSite {
  attention = 0,
  attn_branch = 1,
  mlp_branch = 2,
  embedding = 3,
  mlp_hidden = 4,
  cross_attention = 5,
  cross_branch = 6,
};

struct Pass {
  bool training = false;
  uint64_t seed = 0;
  int64_t step = 0;
  int64_t first_sequence = 0;  // where this part starts in the whole batch: dropout must not depend on the split

  bool causal = true;                // of self-attention
  torch::Tensor key_lengths_b = {};  // int64: keys of self-attention after them are padding; undefined: none is
  const Memory* memory = nullptr;    // of cross-attention
  BeamState* beams = nullptr;        // not null: one new token per row, beside what the state remembers
  Observer* observer = nullptr;      // null: nobody looks
  GradientSink* sink = nullptr;      // of weights' gradients; null: autograd gets all of them
  LogitMaxima* maxima = nullptr;     // of QK-clip; null: not recorded
  Stack stack = Stack::layers;       // whose layers this pass goes through, for observer and maxima
  // Dropout of one site of one layer, for a tensor with `rows` rows per sequence.
  Dropout dropout(double rate, int layer, DropoutSite site, int64_t rows) const {
    if (!training || rate <= 0.0) return {};
    return {.rate = rate,
            .key = dropout_key(stream_key(seed, step, layer, static_cast<int>(site))),
            .first_row = first_sequence * rows};
  }
};

}  // namespace normlab
