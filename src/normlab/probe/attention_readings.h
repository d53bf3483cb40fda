// Statistics of attention as readings of the quantities that are recorded.
#pragma once

#include "normlab/kernels/attention_stats.h"
#include "normlab/record/quantities.h"

namespace normlab {

// The readings of one head, or of a layer from the merged statistics of `heads` heads.
void add_attention(std::vector<Reading>& to, Place place, int head, const AttentionStats& stats, int64_t sequences,
                   int64_t heads = 1);

}  // namespace normlab
