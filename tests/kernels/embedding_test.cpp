// The gradient of a table of embeddings.
#include "normlab/kernels/embedding.h"

#include <gtest/gtest.h>

#include "kernels/parity.h"
#include "kernels/scalar/twins.h"

namespace normlab::testing {
namespace {

TEST(Embedding, RowsAreAddedWhereTheirTokensPoint) {
  constexpr size_t kRows = 50, kVocab = 7;
  std::vector<int64_t> tokens(kRows);
  for (size_t i = 0; i < kRows; ++i)
    tokens[i] = static_cast<int64_t>(draw_below(3, i, kVocab - 1));  // the last is unused
  for (const size_t cols : kSizes) {
    SCOPED_TRACE(cols);
    const auto dx = random_values(1, kRows * cols), start = random_values(2, kVocab * cols);
    std::vector<double> truth(start.begin(), start.end());
    auto plain = start;
    for (size_t i = 0; i < kRows * cols; ++i) {
      const size_t at = static_cast<size_t>(tokens[i / cols]) * cols + i % cols;
      truth[at] += 0.5 * dx[i];
      plain[at] += 0.5F * dx[i];
    }
    const auto check = [&](decltype(&embedding_backward) kernel) {
      auto whole = start, split = start;
      EmbeddingBackward args{.tokens = tokens.data(),
                             .rows = kRows,
                             .cols = cols,
                             .dx = dx.data(),
                             .scale = 0.5F,
                             .d_table = whole.data()};
      kernel(args, {0, kVocab});
      expect_parity("table", whole, truth, plain, 2.0);
      args.d_table = split.data();
      kernel(args, {3, kVocab});
      kernel(args, {0, 3});
      EXPECT_EQ(whole, split);
    };
    on_every_target([&] { check(embedding_backward); });
    check(scalar::embedding_backward);
  }
}

}  // namespace
}  // namespace normlab::testing
