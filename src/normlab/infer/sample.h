// Generation: one token after another from a language model, with a cache of keys and values.
#pragma once

#include <functional>
#include <span>
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

// The choice of one token from the logits of all; draw number `index` of the seed.
int64_t choose_token(std::span<const float> logits, const SampleOptions& options, int64_t index);
// Of a contiguous tensor of float32.
std::span<const float> floats_of(const torch::Tensor& tensor);

// Continues the prompt; `emit` gets each token and may return false to stop. A text longer than the model's window is
// continued from its last half window, whose keys are computed anew.
void generate(const DecoderLm& model, std::vector<int64_t> prompt, const SampleOptions& options,
              const std::function<bool(int64_t)>& emit);

// The same for many texts, with the weights as they are when it is made.
class Generator {
 public:
  explicit Generator(const DecoderLm& model);
  // Several texts side by side, each as if it were alone; `emit` gets the number of the text as well. Without the fused
  // kernels they are made one after another.
  void operator()(std::vector<std::vector<int64_t>> prompts, const SampleOptions& options,
                  const std::function<bool(size_t, int64_t)>& emit) const;

 private:
  DecoderLm model_;
  std::shared_ptr<const DecodePlan> plan_;  // of the fused kernels
};

}  // namespace normlab
