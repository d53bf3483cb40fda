// What the attention kernel counts on its way, for each query head.
#pragma once

#include <cstdint>

namespace normlab {

// Summed over the rows of one query head that see a key, before dropout and after the soft-cap; logits are S.
struct AttentionStats {
  float max_logit = -3.402823466e38F, min_logit = 3.402823466e38F;
  double sum_squares = 0.0;
  int64_t n_logits = 0;
  double sum_entropy = 0.0;  // in nats
  float min_entropy = 3.402823466e38F;
  int64_t n_saturated = 0;  // rows with max_j A_ij > 0.99
  int64_t n_rows = 0;
};
void merge(AttentionStats& into, const AttentionStats& other) noexcept;

}  // namespace normlab
