// A trained model rewritten as one of the architectures of transformers and llama.cpp, and the check of the files that
// were written of it.
#pragma once

#include <string>
#include <vector>

#include "normlab/infer/absorb.h"
#include "normlab/infer/hf_form.h"

namespace normlab {

// What was written, and how its logits differ from the model's.
struct ModelExport {
  HfForm form;
  std::vector<std::string> absorbed = {};  // what went into weights, one line each
  double largest_difference = 0.0, largest_logit = 0.0;
};

// The model with absorbed constants, or as it is when there are none.
Absorbed absorbed_or_same(DecoderLm& model);

// The same function as a model of the architecture `type`, with this pairing of the channels that rope rotates.
DecoderLm in_form(Absorbed model, const std::string& type, RopePairing pairing, int vocab_size);

// Compares logits on random tokens; Error when one differs by more than 1e-4 of the largest.
void check_logits(ModelExport& result, const DecoderLm& original, const DecoderLm& written);

}  // namespace normlab
