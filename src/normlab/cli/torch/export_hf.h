// normlab export --to hf.
#pragma once

#include <string>

#include "normlab/cli/verbs.h"
#include "normlab/train/checkpoint.h"

namespace normlab {

// Writes the folder `out` and says in which form, and why.
Exit export_hf(LoadedModel& loaded, const std::string& out, bool json);

}  // namespace normlab
