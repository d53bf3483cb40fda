// normlab import: a checkpoint from the weights of another implementation.
#include "normlab/infer/import.h"

#include <filesystem>
#include <memory>

#include "normlab/base/file.h"
#include "normlab/base/memory.h"
#include "normlab/base/text.h"
#include "normlab/cli/torch/import_hf.h"
#include "normlab/cli/torch/verbs.h"
#include "normlab/data/corpus.h"
#include "normlab/data/dataset.h"
#include "normlab/models/weights.h"
#include "normlab/train/checkpoint.h"

namespace normlab {
namespace {

namespace fs = std::filesystem;

struct ImportOptions {
  std::string from, file, out, config, data;
  bool allow_nonfinite = false;
};

// The configuration named by the user, inside the file, or beside it as Hugging Face stores it.
std::string config_text(const ImportOptions& options, const SafetensorsFile& file) {
  if (!options.config.empty()) return read_file(options.config);
  if (const auto inside = file.metadata().find("config"); inside != file.metadata().end()) return inside->second;
  const fs::path beside = fs::path(options.file).parent_path() / "config.json";
  if (fs::exists(beside)) return read_file(beside);
  throw UsageError("import",
                   "no configuration in the file, and no config.json next to it. Name one with --model-config.");
}

Exit import_weights(const ImportOptions& options) {
  if (options.from == "hf") return import_hf({options.file, options.out, options.data, options.allow_nonfinite});
  const Importer& importer = find_importer(options.from);
  const SafetensorsFile file(options.file);
  const ImportedShape shape = read_shape(importer, config_text(options, file));
  const bool prefixed = !file.tensors().empty() && file.find("inputs.tokens");  // a file of reference values
  DecoderLm model = with_memory_for(concat("the model of ", options.file),
                                    [&] { return import_model(importer, shape, file, prefixed ? "weights." : ""); });

  if (!options.allow_nonfinite) require_finite(options.file, model.parameters());
  const Corpus corpus = load_corpus(find_dataset(options.data), "char");
  if (corpus.tokenizer.vocab_size() != shape.vocab_size)
    throw DataError(options.data, concat("has ", corpus.tokenizer.vocab_size(), " different characters, the model ",
                                         shape.vocab_size, ". Name the text it was trained on with --data."));
  Config config;
  config.norm = shape.norm;
  config.model = shape.model;
  config.data.source = options.data;
  save_model(options.out, model, /*step=*/0, corpus.tokenizer, config);
  print_line(concat("checkpoint in ", options.out, "\nnext: ", own_command({"eval", options.out})));
  return Exit::done;
}

}  // namespace

void add_import(CLI::App& app, Exit& exit) {
  auto* verb = add_torch_verb(app, "import");
  auto options = std::make_shared<ImportOptions>();
  verb->add_option("--from", options->from, concat("hf, or ", join(import_sources(), ", ")))
      ->required()
      ->type_name("SOURCE");
  verb->add_option("file", options->file, "safetensors file; of hf, the folder")->required()->type_name("FILE|DIR");
  verb->add_option("-o,--out", options->out, "folder of the new checkpoint")->required()->type_name("DIR");
  verb->add_option("--model-config", options->config,
                   "configuration of the original model as JSON; default: in the file, or config.json next to it")
      ->type_name("FILE");
  verb->add_option("--data", options->data, "the text whose characters are the vocabulary; default tinyshakespeare")
      ->type_name("NAME|FILE");
  options->data = "tinyshakespeare";
  add_allow_nonfinite(*verb, options->allow_nonfinite);
  verb->footer(
      "Examples:\n  normlab import --from hf Qwen3-0.6B --out qwen3\n  normlab import --from nanogpt "
      "model.safetensors --model-config config.json --out imported");
  verb->callback([options, &exit] { exit = import_weights(*options); });
}

}  // namespace normlab
