// normlab inspect: the attention of a trained model over given text, as a page and as JSON.
#include <filesystem>
#include <memory>

#include "normlab/base/file.h"
#include "normlab/base/terminal.h"
#include "normlab/base/text.h"
#include "normlab/cli/torch/inspect_page.h"
#include "normlab/cli/torch/translator.h"
#include "normlab/cli/torch/verbs.h"
#include "normlab/data/corpus.h"
#include "normlab/data/dataset.h"
#include "normlab/probe/watchdog.h"
#include "normlab/train/checkpoint.h"
#include "normlab/train/trainer.h"

namespace normlab {
namespace {

namespace fs = std::filesystem;

struct InspectOptions {
  std::string model, text, out;
  std::vector<std::string> heads;
  int windows = 8, tokens = 32, threads = 0;
  bool json = false;
};

HeadPlace parse_head(const std::string& text, const ModelConfig& model) {
  const auto parts = split(text, '.');
  const auto layer = parse_integer(parts.front()), head = parse_integer(parts.back());
  if (parts.size() != 2 || !layer || !head || *layer < 0 || *layer >= model.n_layers || *head < 0 ||
      *head >= model.n_heads)
    throw UsageError("--head", concat("got '", text, "', expected LAYER.HEAD, from 0.0 to ", model.n_layers - 1, ".",
                                      model.n_heads - 1, "."));
  return {static_cast<int>(*layer), static_cast<int>(*head)};
}

Batch batch_of(std::vector<EvalWindow> windows, const std::vector<int32_t>& tokens) {
  const int t = windows.front().length;
  std::erase_if(windows, [t](const EvalWindow& each) { return each.length < t; });  // the last may be shorter
  const auto n = static_cast<int64_t>(windows.size());
  const Batch batch{torch::empty({n, t}, torch::kInt64), torch::empty({n, t}, torch::kInt64)};
  for (int64_t i = 0; i < n; ++i) {
    const int32_t* from = tokens.data() + windows[static_cast<size_t>(i)].begin;
    std::copy_n(from, t, batch.inputs.data_ptr<int64_t>() + i * t);
    std::copy_n(from + 1, t, batch.targets.data_ptr<int64_t>() + i * t);
  }
  return batch;
}

std::vector<std::string> labels_of(const Tokenizer& tokenizer, const torch::Tensor& tokens) {
  std::vector<std::string> labels;
  for (int64_t i = 0; i < tokens.numel(); ++i) {
    StreamDecoder decoder(tokenizer);
    const std::string text = decoder.push(static_cast<int32_t>(tokens.const_data_ptr<int64_t>()[i]));
    labels.push_back(text + decoder.finish());
  }
  return labels;
}

Exit inspect_model(const InspectOptions& options) {
  use_threads(options.threads);
  if (is_translator(options.model)) {
    if (!options.text.empty() || !options.heads.empty())
      throw UsageError("inspect", "--text and --head are for language models; leave them out for a translator.");
    return inspect_translator(
        {.model = options.model, .out = options.out, .pairs = options.windows, .json = options.json});
  }
  LoadedModel loaded = load_model(options.model);
  const Config& config = loaded.config;
  std::vector<HeadPlace> heads;
  for (const std::string& each : options.heads) heads.push_back(parse_head(each, config.model));
  const bool other_text = !options.text.empty();
  const std::string source = other_text ? options.text : config.data.source;
  const Corpus corpus = load_corpus(find_dataset(source), loaded.tokenizer);
  const auto n_tokens = static_cast<int64_t>(corpus.tokens.size());
  if (n_tokens < 3) throw DataError(source, "has fewer than three tokens, too few for attention.");
  const TokenRange part =
      other_text ? TokenRange{0, n_tokens} : make_split(n_tokens, config.data.folds, config.data.fold).held_out;
  const auto length = static_cast<int>(std::min<int64_t>(config.model.seq_len, part.end - part.begin - 1));
  const Batch batch = batch_of(eval_windows(part, length, options.windows), corpus.tokens);

  InspectPage page{.model = loaded.folder.string(),
                   .scheme = scheme_label(config.norm),
                   .step = loaded.step,
                   .windows = batch.inputs.size(0),
                   .tokens = length,
                   .text = other_text ? source : concat("the held-out part of ", source),
                   .command = join(command_line(), " "),
                   .found = inspect(loaded.model, batch.inputs, batch.targets),
                   .maps = {},
                   .labels = {},
                   .warnings = {}};
  if (heads.empty()) heads = notable_heads(page.found.readings);
  const torch::Tensor shown = batch.inputs.slice(0, 0, 1).slice(1, 0, options.tokens);
  page.maps = attention_maps(loaded.model, shown, heads);
  page.labels = labels_of(loaded.tokenizer, shown.contiguous());
  page.warnings = Watchdog(0, bounds_logits(config.norm)).after_probe(loaded.step, page.found.readings);

  const fs::path out = options.out.empty() ? fs::path(options.model) / "inspect.html" : fs::path(options.out);
  fs::path json_file = out;
  json_file.replace_extension(".json");
  const nlohmann::ordered_json json = inspect_json(page);
  write_file_atomically(json_file, json.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n");
  write_file_atomically(out, inspect_html(page));
  if (options.json) {
    print_json(json);
    return Exit::done;
  }
  print_line(inspect_verdict(page));
  for (const std::string& warning : page.warnings) print_line(concat(warning_label(STDOUT_FILENO), warning));
  print_line(concat("\npage: ", out.string(), "\ndata: ", json_file.string()));
  return Exit::done;
}

}  // namespace

void add_inspect(CLI::App& app, Exit& exit) {
  auto* verb = add_torch_verb(app, "inspect");
  auto options = std::make_shared<InspectOptions>();
  verb->add_option("run,--run", options->model, "run or checkpoint")->required()->type_name("DIR");
  verb->add_option("--text", options->text, "another text; default: the held-out fold of the training text")
      ->type_name("NAME|FILE");
  verb->add_option("--head", options->heads,
                   "heads whose attention is drawn; default: those with the lowest and highest entropy and "
                   "the one with the largest logit")
      ->type_name("LAYER.HEAD");
  verb->add_option("--windows", options->windows, "windows, of a translator pairs, to measure")->check(whole_number(1));
  verb->add_option("--tokens", options->tokens, "tokens of the first window to draw")->check(whole_number(2, 128));
  verb->add_option("-o,--out", options->out,
                   "page to write; its data is written next to it as .json; default DIR/inspect.html")
      ->type_name("FILE");
  verb->add_option("--threads", options->threads, "threads, 0 for all cores")->check(whole_number(0));
  verb->add_flag("--json", options->json, "print the data on standard output");
  verb->footer(
      concat("Examples:\n"
             "  normlab inspect runs/lp3\n"
             "  normlab inspect runs/gl-en\n"
             "  normlab inspect runs/lp3 --text play.txt --head 0.1 --head 2.3 --out play.html\n",
             definitions()));
  verb->callback([options, &exit] { exit = inspect_model(*options); });
}

}  // namespace normlab
