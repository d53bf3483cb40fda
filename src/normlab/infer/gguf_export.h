// A trained model as a GGUF file, for llama.cpp.
#pragma once

#include <filesystem>

#include "normlab/data/tokenizer.h"
#include "normlab/infer/exact_form.h"

namespace normlab {

// Writes the file in float32. It is read back and its logits compared before it takes its place. UsageError when the
// model is not one of llama.cpp's architectures, its tokenizer not byte-level, or the place taken.
ModelExport export_to_gguf(const std::filesystem::path& path, DecoderLm& model, const Tokenizer& tokenizer);

}  // namespace normlab
