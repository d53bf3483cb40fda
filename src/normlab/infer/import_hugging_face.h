// Importers of the decoders of Hugging Face transformers with RMS norms and rope: Llama, Qwen3, OLMo 2, Gemma.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "normlab/infer/import.h"

namespace normlab {

const std::vector<Importer>& hugging_face_importers();

// A configuration as a JSON object; DataError when it is none, or when a key has another than the expected value.
nlohmann::json parse_config(const std::string& source, const std::string& text);
void require(const nlohmann::json& config, const char* key, const nlohmann::json& expected);

}  // namespace normlab
