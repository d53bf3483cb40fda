// Gradient of a table of embeddings: rows of dx are added to the rows of the table that their tokens chose.
//
//   d_table[token_i] += scale dx_i        for i = 0 .. rows - 1 in this order
#pragma once

#include <cstddef>
#include <cstdint>

#include "normlab/kernels/rows.h"

namespace normlab {

struct EmbeddingBackward {
  const int64_t* tokens = nullptr;  // [rows]
  size_t rows = 0, cols = 0;
  const float* dx = nullptr;  // [rows, cols], contiguous
  float scale = 1.0F;
  float* d_table = nullptr;  // [vocab, cols], contiguous; added to
};

// Handles the tokens in [vocab.begin, vocab.end) only. Threads share the work by ranges of the table, never by rows of
// dx, so that each entry is summed in the same order whatever their number.
void embedding_backward(const EmbeddingBackward& args, RowRange vocab) noexcept;

}  // namespace normlab
