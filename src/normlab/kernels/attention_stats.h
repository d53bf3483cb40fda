// What the attention kernel counts on its way, for each query head.
#pragma once

#include <cstdint>

namespace normlab {

// Over the rows of one query head, before dropout and after the soft-cap; S are the logits, A the weights.
struct AttentionStats {
  // Over all S_ij of visible keys.
  float max_logit = -3.402823466e38F, min_logit = 3.402823466e38F;
  double sum_squares = 0.0;
  int64_t n_logits = 0;
  // Over the rows i that see n_i >= 2 keys: a single key leaves attention no choice.
  double sum_entropy = 0.0;           // H_i = - sum_j A_ij ln A_ij
  double sum_relative_entropy = 0.0;  // H_i / ln n_i
  float min_entropy = 3.402823466e38F;
  double sum_spread = 0.0;  // max_j S_ij - min_j S_ij
  int64_t n_saturated = 0;  // rows with max_j A_ij > 0.99
  int64_t n_rows = 0;
};
void merge(AttentionStats& into, const AttentionStats& other) noexcept;

}  // namespace normlab
