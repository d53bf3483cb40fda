// Generation: one token after another from a language model, with a cache of keys and values.
#pragma once

#include <functional>
#include <vector>

#include "normlab/models/decoder_lm.h"

namespace normlab {

struct SampleOptions {
  int max_tokens = 500;
  double temperature = 1.0;  // 0 takes the most probable token
  int top_k = 0;             // 0 keeps all
  double top_p = 1.0;        // 1 keeps all; a share of what top_k keeps, as in Hugging Face's transformers
  uint64_t seed = 1;
};

// The choice of one token from its logits_v; draw number `index` of the seed.
int64_t choose_token(const torch::Tensor& logits_v, const SampleOptions& options, int64_t index);

// Continues the prompt; `emit` gets each token and may return false to stop. A text longer than the model's window is
// continued from its last half window, whose keys are computed anew.
void generate(const DecoderLm& model, std::vector<int64_t> prompt, const SampleOptions& options,
              const std::function<bool(int64_t)>& emit);

}  // namespace normlab
