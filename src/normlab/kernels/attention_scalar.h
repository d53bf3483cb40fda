// Scalar twin of the attention kernels: the readable truth, one query row at a time in double.
#pragma once

#include "normlab/kernels/attention.h"

namespace normlab::scalar {

size_t attention_scratch_bytes(const AttentionSpec& spec, bool backward);
void attention_forward(const AttentionSpec& spec, const AttentionUnit& unit, void* scratch);
void attention_backward(const AttentionSpec& spec, const AttentionUnit& unit, const AttentionGrads& grads,
                        void* scratch);

}  // namespace normlab::scalar
