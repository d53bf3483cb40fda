// Importers: weights and configurations of other implementations, as tables of names.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "normlab/config/model_config.h"
#include "normlab/models/decoder_lm.h"
#include "normlab/record/safetensors.h"

namespace normlab {

// The shape of a foreign model in our terms.
struct ImportedShape {
  ModelConfig model;
  NormScheme norm;
  int vocab_size = 0;
};

// Which rows of our tensor a foreign one fills: our qkv holds three of them, our SwiGLU input two.
enum class RowPart { all, q, k, v, up, gate };

struct NameRow {
  std::string theirs;  // "{i}" stands for the layer
  std::string ours;
  RowPart part = RowPart::all;
  bool transposed = false;  // theirs is [in, out]
  bool plus_one = false;    // theirs is our gain less 1
};

struct Importer {
  std::string source;  // "nanogpt", as in the metadata of the reference files
  std::vector<NameRow> names;
  ImportedShape (*shape)(const std::string& config_json);  // called through read_shape()
};

// The sources of language models, which `normlab import` takes, and all sources, with the translators' one, which
// `normlab verify` takes. Help and messages list these.
std::vector<std::string> import_sources();
std::vector<std::string> verify_sources();

// The importer of that source; UsageError with the names of all when there is none.
const Importer& find_importer(const std::string& source);

// The shape that their configuration describes, to be computed by these kernels (model.kernels); DataError when a key
// is missing or cannot be imported.
ImportedShape read_shape(const Importer& importer, const std::string& config_json, const std::string& kernels = "best");

// One tensor of theirs and where it goes.
struct NameMatch {
  std::string theirs, ours;
  int64_t first_row = 0, rows = 0;  // of our tensor
  bool transposed = false, plus_one = false;
};
// Every foreign name that the model has a tensor for, with layers filled in.
std::vector<NameMatch> match_names(const Importer& importer, const ImportedShape& shape, DecoderLm& model);

// Foreign tensors, in one file or several.
struct TensorSource {
  std::string where;  // for messages
  std::vector<std::string> names;
  std::function<TensorView(const std::string& name)> at;  // DataError when missing
};

// Builds the model and fills it; DataError when a name is missing, left over, or of another shape.
DecoderLm import_model(const Importer& importer, const ImportedShape& shape, const TensorSource& source,
                       torch::TensorOptions options = torch::kFloat32);
// From one file, in which `prefix` stands before every foreign name.
DecoderLm import_model(const Importer& importer, const ImportedShape& shape, const SafetensorsFile& file,
                       const std::string& prefix, torch::TensorOptions options = torch::kFloat32);

}  // namespace normlab
