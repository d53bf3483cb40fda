// normlab eval: the loss of a trained model on held-out text.
#include <cmath>
#include <memory>

#include "normlab/base/text.h"
#include "normlab/cli/signals.h"
#include "normlab/cli/torch/translator.h"
#include "normlab/cli/torch/verbs.h"
#include "normlab/config/load_data.h"
#include "normlab/data/dataset.h"
#include "normlab/data/text_size.h"
#include "normlab/train/checkpoint.h"
#include "normlab/train/evaluate.h"

namespace normlab {
namespace {

struct EvalOptions {
  std::string model, data, device = "auto";
  int windows = 0, threads = 0;
  bool json = false, allow_nonfinite = false;
};

Exit evaluate_model(const EvalOptions& options) {
  use_threads(options.threads);
  if (is_translator(options.model))
    return evaluate_translator({.model = options.model,
                                .data = options.data,
                                .pairs = options.windows,
                                .json = options.json,
                                .allow_nonfinite = options.allow_nonfinite,
                                .device = options.device});
  const LoadedModel loaded = load_model(options.model, {options.allow_nonfinite, options.device});
  const Config& config = loaded.config;
  const bool other_text = !options.data.empty();
  const Corpus corpus = load_corpus(find_dataset(other_text ? options.data : config.data.source), loaded.tokenizer,
                                    form_of(config, stop_requested));
  const auto n_tokens = static_cast<int64_t>(corpus.tokens.size());
  if (n_tokens < 2) throw DataError(options.data, "has fewer than two tokens, too few for a prediction.");
  // Another text is evaluated as a whole, the training text on its held-out fold, token files on val.bin.
  const bool whole = other_text && corpus.held_out == 0;
  const TokenRange part =
      whole ? TokenRange{0, n_tokens} : split_of(corpus, config.data.folds, config.data.fold).held_out;
  const auto windows = eval_windows(part, config.model.seq_len, options.windows);
  const auto loss = evaluate(loaded.model, corpus.tokens, windows, config.train.batch_size, stop_requested);
  if (!loss) return Exit::stopped;

  const TextSize size = size_of_targets(corpus.tokenizer, corpus.tokens, windows);
  const double per_character = size.bits_per_character(*loss), per_byte = size.bits_per_byte(*loss);
  const bool has_text = size.bytes > 0;  // token ids alone have none
  if (options.json) {
    nlohmann::json out = {{"checkpoint", loaded.folder.string()}, {"step", loaded.step},   {"loss", *loss},
                          {"perplexity", std::exp(*loss)},        {"tokens", size.tokens}, {"bytes", size.bytes}};
    if (has_text) out["bits_per_character"] = per_character, out["bits_per_byte"] = per_byte;
    print_json(out);
  } else {
    print_line(concat("checkpoint          ", loaded.folder.string(), " (step ", loaded.step, ")"));
    print_line(concat("loss                ", fixed(*loss, 4), " nats per token over ", size.tokens, " tokens"));
    print_line(concat("perplexity          ", fixed(std::exp(*loss), 4), " per token"));
    if (has_text) print_line(concat("bits per character  ", fixed(per_character, 4)));
    if (has_text) print_line(concat("bits per byte       ", fixed(per_byte, 4)));
  }
  return Exit::done;
}

}  // namespace

void add_eval(CLI::App& app, Exit& exit) {
  auto* verb = add_torch_verb(app, "eval");
  auto options = std::make_shared<EvalOptions>();
  verb->add_option("run,--run", options->model, "run or checkpoint")->required()->type_name("DIR");
  verb->add_option("--data", options->data,
                   "another text, of a translator a folder; default: the held-out or development text")
      ->type_name("NAME|FILE|DIR");
  verb->add_option("--windows", options->windows, "windows, of a translator pairs, to evaluate; 0 for all")
      ->check(whole_number(0));
  verb->add_option("--threads", options->threads, "threads, 0 for all cores")->check(whole_number(0));
  verb->add_flag("--json", options->json, "machine-readable output");
  add_device(*verb, options->device);
  add_allow_nonfinite(*verb, options->allow_nonfinite);
  verb->footer("Examples:\n  normlab eval runs/lp3\n  normlab eval runs/gl-en --json");
  verb->callback([options, &exit] { exit = evaluate_model(*options); });
}

}  // namespace normlab
