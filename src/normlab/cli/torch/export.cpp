// normlab export: a trained model without what only training needs, its constants and gains absorbed into its weights.
#include <filesystem>
#include <memory>

#include "normlab/base/text.h"
#include "normlab/cli/torch/export_form.h"
#include "normlab/cli/torch/verbs.h"
#include "normlab/infer/absorb.h"
#include "normlab/train/checkpoint.h"

namespace normlab {
namespace {

namespace fs = std::filesystem;

struct ExportOptions {
  std::string model, out, to;
  bool absorb = false, optimizer = false, json = false, allow_nonfinite = false;
};

constexpr const char* optimizer_file = "optimizer.safetensors";

Exit export_model(const ExportOptions& options) {
  if (options.absorb && options.optimizer)
    throw UsageError("--optimizer",
                     "does not go with --absorb: the moments belong to the weights as they were trained.");
  if (!options.to.empty() && (options.absorb || options.optimizer))
    throw UsageError("--to",
                     concat(options.to, " does not go with --absorb or --optimizer: it absorbs what its form needs."));
  LoadedModel loaded = load_model(options.model, {.allow_nonfinite = options.allow_nonfinite});
  if (!options.to.empty()) return export_form(loaded, options.to, options.out, options.json);
  std::vector<std::string> absorbed, kept;
  Config config = loaded.config;
  DecoderLm model = loaded.model;
  if (options.absorb) {
    const Absorbed result = absorb(model);
    config.norm = result.scheme;
    config.model = result.config;
    model = absorbed_model(result, loaded.tokenizer.vocab_size());
    config.model.kernels = model.config().kernels;
    absorbed = result.absorbed, kept = result.kept;
  }
  save_model(options.out, model, loaded.step, loaded.tokenizer, config);
  // The moments belong to the training; they go along only when asked for.
  if (options.optimizer) fs::copy_file(loaded.folder / optimizer_file, fs::path(options.out) / optimizer_file);
  if (options.json) {
    print_json({{"out", options.out}, {"absorbed", absorbed}, {"kept", kept}});
    return Exit::done;
  }
  for (const std::string& line : absorbed) print_line("absorbed: " + line);
  for (const std::string& line : kept) print_line("kept:   " + line);
  print_line(concat("model in ", options.out, "\nnext: ", own_command({"eval", options.out})));
  return Exit::done;
}

}  // namespace

void add_export(CLI::App& app, Exit& exit) {
  auto* verb = add_torch_verb(app, "export");
  auto options = std::make_shared<ExportOptions>();
  verb->add_option("run,--run", options->model, "run or checkpoint")->required()->type_name("DIR");
  verb->add_option("-o,--out", options->out, "new folder for the model; of gguf, the file")
      ->required()
      ->type_name("DIR");
  verb->add_option("--to", options->to,
                   "hf: a checkpoint of Hugging Face transformers; gguf: a file for llama.cpp; default: one of normlab")
      ->check(CLI::IsMember({"hf", "gguf"}))
      ->type_name("FORM");
  verb->add_flag("--absorb", options->absorb,
                 "absorb constants and gains into weights where the logits stay the same; says what is kept and why");
  verb->add_flag("--optimizer", options->optimizer, "with the optimiser's moments, twice the size of the model");
  verb->add_flag("--json", options->json, "machine-readable output");
  add_allow_nonfinite(*verb, options->allow_nonfinite);
  verb->footer(
      "Examples:\n  normlab export runs/angpt --absorb --out exported\n  normlab export runs/mine --to hf --out "
      "my-model");
  verb->callback([options, &exit] { exit = export_model(*options); });
}

}  // namespace normlab
