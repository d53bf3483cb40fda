#include "normlab/probe/attention_readings.h"

#include <cmath>

namespace normlab {

void add_attention(std::vector<Reading>& to, Place place, int head, const AttentionStats& stats, int64_t sequences,
                   int64_t heads) {
  const auto add = [&](Quantity quantity, double value) {
    to.push_back({quantity, place.layer, head, value, place.stack});
  };
  add(Quantity::max_logit, static_cast<double>(stats.max_logit));
  add(Quantity::min_logit, static_cast<double>(stats.min_logit));
  add(Quantity::logit_norm, std::sqrt(stats.sum_squares / static_cast<double>(sequences * heads)));
  add(Quantity::logit_rms, std::sqrt(stats.sum_squares / static_cast<double>(stats.n_logits)));
  if (stats.n_rows == 0) return;
  const auto rows_counted = static_cast<double>(stats.n_rows);
  add(Quantity::logit_spread, stats.sum_spread / rows_counted);
  add(Quantity::entropy, stats.sum_entropy / rows_counted);
  add(Quantity::relative_entropy, stats.sum_relative_entropy / rows_counted);
  add(Quantity::min_entropy, static_cast<double>(stats.min_entropy));
  add(Quantity::saturated, static_cast<double>(stats.n_saturated) / rows_counted);
}

}  // namespace normlab
