// Vector code of embedding.h.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "normlab/kernels/embedding.cpp"
#include <hwy/foreach_target.h>
// After foreach_target.h.
#include <hwy/highway.h>

#include "normlab/kernels/embedding.h"
#include "normlab/kernels/rows-inl.h"

HWY_BEFORE_NAMESPACE();
namespace normlab {
namespace HWY_NAMESPACE {
namespace {

void add_rows(const EmbeddingBackward& args, RowRange vocab) {
  const auto scale = hn::Set(F32(), args.scale);
  for (size_t i = 0; i < args.rows; ++i) {
    const size_t token = static_cast<size_t>(args.tokens[i]);
    if (token < vocab.begin || token >= vocab.end) continue;
    const float* from = args.dx + i * args.cols;
    float* to = args.d_table + token * args.cols;
    for (size_t c = 0; c < args.cols; c += kStep) {
      const size_t left = args.cols - c;
      store_left(hn::MulAdd(load_left(from + c, left), scale, load_left(to + c, left)), to + c, left);
    }
  }
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace normlab
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace normlab {

HWY_EXPORT(add_rows);

void embedding_backward(const EmbeddingBackward& args, RowRange vocab) noexcept {
  HWY_DYNAMIC_DISPATCH(add_rows)(args, vocab);
}

}  // namespace normlab
#endif
