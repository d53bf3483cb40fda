// Scalar twin of embedding.cpp.
#include "kernels/scalar/twins.h"

namespace normlab::scalar {

void embedding_backward(const EmbeddingBackward& args, RowRange vocab) noexcept {
  for (size_t i = 0; i < args.rows; ++i) {
    const size_t token = static_cast<size_t>(args.tokens[i]);
    if (token < vocab.begin || token >= vocab.end) continue;
    for (size_t c = 0; c < args.cols; ++c)
      args.d_table[token * args.cols + c] += args.scale * args.dx[i * args.cols + c];
  }
}

}  // namespace normlab::scalar
