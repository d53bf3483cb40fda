// normlab export: a trained model without what only training needs, its constants and gains folded into its weights.
#include <filesystem>
#include <memory>

#include "base/text.h"
#include "cli/verbs.h"
#include "infer/fold.h"
#include "train/checkpoint.h"

namespace normlab {
namespace {

struct ExportOptions {
  std::string model, out;
  bool fold = false, json = false;
};

Exit export_model(const ExportOptions& options) {
  LoadedModel loaded = load_model(options.model);
  std::vector<std::string> folded, kept;
  Config config = loaded.config;
  DecoderLm model = loaded.model;
  if (options.fold) {
    const Folded result = fold(model);
    config.norm = result.scheme;
    config.model = result.config;
    model = folded_model(result, loaded.tokenizer.vocab_size());
    config.model.kernels = model.config().kernels;
    folded = result.folded, kept = result.kept;
  }
  // The moments of the optimiser are those of training; a new one has none.
  const AdamW optimizer(model.parameters(), {});
  save_checkpoint(options.out, model, optimizer, {.step = loaded.step}, loaded.tokenizer, config);
  if (options.json) {
    print_json({{"out", options.out}, {"folded", folded}, {"kept", kept}});
    return Exit::done;
  }
  for (const std::string& line : folded) print_line("folded: " + line);
  for (const std::string& line : kept) print_line("kept:   " + line);
  print_line(str("model in ", options.out, "\nnext: normlab eval ", options.out));
  return Exit::done;
}

}  // namespace

void add_export(CLI::App& app, Exit& exit) {
  auto* verb = app.add_subcommand("export", "a trained model, with --fold without its constants and gains");
  auto options = std::make_shared<ExportOptions>();
  verb->add_option("model", options->model, "run or checkpoint")->required()->type_name("DIR");
  verb->add_option("-o,--out", options->out, "new folder for the model")->required()->type_name("DIR");
  verb->add_flag("--fold", options->fold,
                 "absorb constants and gains into weights where the logits stay the same; says what is kept and why");
  verb->add_flag("--json", options->json, "machine-readable output");
  verb->footer("Example:\n  normlab export runs/angpt --fold --out exported");
  verb->callback([options, &exit] { exit = export_model(*options); });
}

}  // namespace normlab
