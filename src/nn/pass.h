// What a forward pass needs to know besides its input.
#pragma once

#include <cstdint>

#include "kernels/attention_stats.h"
#include "ops/dropout.h"

namespace normlab {

struct Pass {
  bool training = false;
  uint64_t seed = 0;
  int64_t step = 0;
  int64_t first_sequence = 0;  // where this part starts in the whole batch: dropout must not depend on the split

  AttentionStats* stats = nullptr;  // [n_layers, sequences of the whole batch, n_heads] to be written; null: none
  int64_t sequences = 0;            // of the whole batch

  AttentionStats* layer_stats(int layer, int64_t n_heads) const {
    return stats ? stats + (layer * sequences + first_sequence) * n_heads : nullptr;
  }

  // Dropout of one site of one layer, for a tensor with `rows` rows a sequence.
  Dropout dropout(double rate, int layer, int site, int64_t rows) const {
    if (!training || rate <= 0.0) return {};
    return {.rate = rate, .key = dropout_key(stream_key(seed, step, layer, site)), .first_row = first_sequence * rows};
  }
};

}  // namespace normlab
