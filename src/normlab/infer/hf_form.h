// In which form a model goes to Hugging Face: as an architecture of transformers where it is one, otherwise with its
// own modelling file.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "normlab/config/model_config.h"

namespace normlab {

struct HfForm {
  // "llama", "qwen3", "olmo2", "gpt2", "gemma2" or "gemma3_text"; "normlab" with the modelling file
  std::string type;
  std::string reason;  // why this one
};
// Of a model whose constants and gains are absorbed as far as they can be (absorb.h).
HfForm hf_form(const ModelConfig& model, const NormScheme& norm);

// The same for Gemma 2 and 3, of a model as it is: absorbing would untie its head. An empty type: it is neither.
HfForm gemma_form(const ModelConfig& model, const NormScheme& norm);

// config.json. `type` is one of hf_form's; of "normlab" it holds the sections [model] and [norm] of a run.
nlohmann::ordered_json hf_config(const std::string& type, const ModelConfig& model, const NormScheme& norm,
                                 int vocab_size);

}  // namespace normlab
