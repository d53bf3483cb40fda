// normlab export --to hf and --to gguf.
#pragma once

#include <string>

#include "normlab/cli/verbs.h"
#include "normlab/train/checkpoint.h"

namespace normlab {

// Writes the folder or file `out` in the form of Hugging Face ("hf") or llama.cpp ("gguf") and says as which
// architecture, and why.
Exit export_form(LoadedModel& loaded, const std::string& to, const std::string& out, bool json);

}  // namespace normlab
