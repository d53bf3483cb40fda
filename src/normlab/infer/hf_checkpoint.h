// The folder of a Hugging Face checkpoint: configuration, safetensors in one file or in shards, tokenizer.json.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "normlab/data/tokenizer.h"
#include "normlab/infer/import.h"

namespace normlab {

// The model types that can be imported, as config.json names them.
const std::vector<std::string>& hf_model_types();

struct HfModel {
  std::string type;  // "qwen3"
  ImportedShape shape;
  DecoderLm model;
};
// DataError, which names the file and what is wrong, for another architecture, a missing or damaged shard, a tensor
// that is missing, left over or of another shape.
HfModel read_hf_model(const std::filesystem::path& folder);

// Its tokenizer.json, with as many ids as the model has rows.
Tokenizer read_hf_tokenizer(const std::filesystem::path& folder, int vocab_size);

}  // namespace normlab
