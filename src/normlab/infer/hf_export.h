// A trained model as the folder of a Hugging Face checkpoint.
#pragma once

#include <filesystem>
#include <string>

#include "normlab/data/tokenizer.h"
#include "normlab/infer/exact_form.h"
#include "normlab/models/decoder_lm.h"

namespace normlab {

// Writes config.json, generation_config.json, model.safetensors, the tokeniser's files and, where the form needs it,
// modeling_normlab.py. The files are then read back and their logits compared; Error, and no folder, when one differs
// by more than 1e-4 of the largest.
ModelExport export_to_hf(const std::filesystem::path& folder, DecoderLm& model, const Tokenizer& tokenizer);

// The tokenizer.json of any tokenizer: characters and bytes become vocabularies without merges.
std::string hf_tokenizer_json(const Tokenizer& tokenizer);

}  // namespace normlab
