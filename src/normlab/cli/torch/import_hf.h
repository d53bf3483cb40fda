// normlab import --from hf.
#pragma once

#include <string>

#include "normlab/cli/verbs.h"

namespace normlab {

struct HfImportRequest {
  std::string folder, out, data;
  bool allow_nonfinite = false;
};
// A checkpoint from the folder of a Hugging Face one, with its tokenizer.
Exit import_hf(const HfImportRequest& request);

}  // namespace normlab
