// Importer of translators: weights and configuration of the QKNorm authors' code (CyndxAI/QKNorm).
#pragma once

#include <string>
#include <vector>

#include "normlab/models/encoder_decoder.h"
#include "normlab/record/safetensors.h"

namespace normlab {

inline constexpr const char* translation_source = "qknorm";  // in the metadata of the reference files

struct ImportedTranslator {
  ModelConfig model;
  NormScheme norm;
  TranslatorShape shape;
  bool mask_by_language = true;  // else all but padding and begin can be output
  int beam = 4;
  double length_penalty = 0.6;
};
// DataError when a key is missing or cannot be imported.
ImportedTranslator read_translator(const std::string& config_json, const std::string& kernels);

// Rows of one tensor of theirs, and the tensor of ours that they fill.
struct TensorPart {
  std::string theirs;
  int64_t first_row = 0, rows = 0;
  std::string ours;
};
std::vector<TensorPart> translator_parts(const ImportedTranslator& imported, EncoderDecoder& model);
torch::Tensor rows_of(const torch::Tensor& theirs, const TensorPart& part);

// DataError when a name is missing, left over, or of another shape.
EncoderDecoder import_translator(const ImportedTranslator& imported, const SafetensorsFile& file,
                                 const std::string& prefix);

}  // namespace normlab
