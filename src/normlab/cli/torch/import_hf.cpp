#include "normlab/cli/torch/import_hf.h"

#include <filesystem>

#include "normlab/base/memory.h"
#include "normlab/base/text.h"
#include "normlab/infer/hf_checkpoint.h"
#include "normlab/models/weights.h"
#include "normlab/train/checkpoint.h"

namespace normlab {

Exit import_hf(const HfImportRequest& request) {
  namespace fs = std::filesystem;
  if (!fs::is_directory(request.folder))
    throw UsageError("--from",
                     concat("hf expects the folder of a Hugging Face checkpoint; got '", request.folder, "'."));
  HfModel imported =
      with_memory_for(concat("the model of ", request.folder), [&] { return read_hf_model(request.folder); });
  if (!request.allow_nonfinite) require_finite(request.folder, imported.model.parameters());
  const Tokenizer tokenizer = read_hf_tokenizer(request.folder, imported.shape.vocab_size);
  Config config;
  config.norm = imported.shape.norm;
  config.model = imported.shape.model;
  config.data.source = request.data;
  config.data.tokenizer = TokenUnit::subwords;
  config.data.tokenizer_file = fs::absolute(fs::path(request.out) / "tokenizer.json").string();
  save_model(request.out, imported.model, /*step=*/0, tokenizer, config);
  print_line(concat("form: ", imported.type, ", ", si(static_cast<double>(tokenizer.vocab_size())),
                    " tokens\ncheckpoint in ", request.out,
                    "\nnext: ", own_command({"inspect", request.out, "--text", "FILE"})));
  return Exit::done;
}

}  // namespace normlab
