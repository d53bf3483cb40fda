// normlab inspect: the attention of a trained model over given text, as a page and as JSON.
#include <algorithm>
#include <filesystem>
#include <memory>

#include "normlab/base/file.h"
#include "normlab/base/terminal.h"
#include "normlab/base/text.h"
#include "normlab/cli/signals.h"
#include "normlab/cli/torch/inspect_tables.h"
#include "normlab/cli/torch/translator.h"
#include "normlab/cli/torch/verbs.h"
#include "normlab/config/load_data.h"
#include "normlab/data/dataset.h"
#include "normlab/probe/watchdog.h"
#include "normlab/study/present/scaling_tables.h"
#include "normlab/train/trainer.h"
#include "normlab/train/translation_batches.h"

namespace normlab {
namespace {

namespace fs = std::filesystem;

struct InspectOptions {
  std::string model, text, out, device = "auto";
  std::vector<std::string> heads;
  int windows = 8, tokens = 32, threads = 0;
  bool json = false, allow_nonfinite = false;
};

// "LAYER.HEAD", of a translator with the attention in front: "cross.0.3".
HeadPlace parse_head(const std::string& text, const Inspection& found) {
  const auto parts = split(text, '.');
  for (const EntropyFloor& each : found.floors) {
    const HeadPlace place = each.place;
    std::vector<std::string> name = {concat(place.layer), concat(place.head)};
    if (place.stack != Stack::layers) name.insert(name.begin(), name_of(place.stack));
    if (parts == name) return place;
  }
  const HeadPlace last = found.floors.back().place;
  throw UsageError(
      "--head", last.stack == Stack::layers
                    ? concat("got '", text, "', expected LAYER.HEAD, from 0.0 to ", last.layer, ".", last.head, ".")
                    : concat("got '", text, "', expected encoder, decoder or cross, layer and head, such as cross.0.",
                             last.head, "."));
}

Batch batch_of(std::vector<EvalWindow> windows, const Tokens& tokens) {
  const int t = windows.front().length;
  std::erase_if(windows, [t](const EvalWindow& each) { return each.length < t; });  // the last may be shorter
  const auto n = static_cast<int64_t>(windows.size());
  const Batch batch{torch::empty({n, t}, torch::kInt64), torch::empty({n, t}, torch::kInt64)};
  for (int64_t i = 0; i < n; ++i) {
    const auto begin = static_cast<size_t>(windows[static_cast<size_t>(i)].begin), count = static_cast<size_t>(t);
    tokens.copy_window(begin, {batch.inputs.data_ptr<int64_t>() + i * t, count},
                       {batch.targets.data_ptr<int64_t>() + i * t, count});
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

template <class Loaded>
InspectPage page_of(const Loaded& loaded, int64_t parameters) {
  const Config& config = loaded.config;
  return {.model = loaded.folder.string(),
          .scheme = scheme_label(config.norm),
          .setup = concat(config.model.n_layers, " layers of ", config.model.n_heads, " heads, width ",
                          config.model.d_model, ", ", si(static_cast<double>(parameters)), " parameters; trained for ",
                          loaded.step, " steps on ", fs::path(config.data.source).filename().string(), "."),
          .step = loaded.step,
          .text = {},
          .command = join(command_line(), " "),
          .found = {},
          .maps = {},
          .heads = {},
          .target = {},
          .source = {},
          .warnings = {}};
}

template <class Model>
int64_t parameter_count(Model& model) {
  int64_t count = 0;
  for (const auto& [name, tensor] : model.parameters()) count += tensor.numel();
  return count;
}

InspectPage inspect_language_model(const InspectOptions& options) {
  LoadedModel loaded = load_model(options.model, {options.allow_nonfinite, options.device});
  const Config& config = loaded.config;
  const bool other_text = !options.text.empty();
  const std::string source = other_text ? options.text : config.data.source;
  const Corpus corpus = load_corpus(find_dataset(source), loaded.tokenizer, form_of(config, stop_requested));
  const auto n_tokens = static_cast<int64_t>(corpus.tokens.size());
  if (n_tokens < 3) throw DataError(source, "has fewer than three tokens, too few for attention.");
  const bool whole = other_text && corpus.held_out == 0;
  const TokenRange part =
      whole ? TokenRange{0, n_tokens} : split_of(corpus, config.data.folds, config.data.fold).held_out;
  const auto length = static_cast<int>(std::min<int64_t>(config.model.seq_len, part.end - part.begin - 1));
  const Batch batch = batch_of(eval_windows(part, length, options.windows), corpus.tokens);
  InspectPage page = page_of(loaded, parameter_count(loaded.model));
  page.sequences = batch.inputs.size(0), page.tokens = length;
  page.text = other_text ? source : concat("the held-out part of ", source);
  page.found = inspect(loaded.model, batch.inputs, batch.targets);
  const torch::Tensor shown = batch.inputs.slice(0, 0, 1).slice(1, 0, options.tokens).contiguous();
  page.maps = attention_maps(loaded.model, shown);
  page.target = labels_of(loaded.tokenizer, shown);
  page.warnings = Watchdog(0, bounds_logits(config.norm)).after_probe(loaded.step, page.found.readings);
  return page;
}

std::vector<std::string> labels_of(const PairVocabulary& vocabulary, const torch::Tensor& tokens) {
  std::vector<std::string> labels;
  for (int64_t i = 0; i < tokens.numel(); ++i) {
    const auto id = static_cast<int32_t>(tokens.const_data_ptr<int64_t>()[i]);
    labels.push_back(id == PairVocabulary::begin ? "<s>"
                     : id == PairVocabulary::end ? "</s>"
                                                 : vocabulary.decode({id}));
  }
  return labels;
}

// What is drawn of a sentence that is longer than --tokens.
void cut(InspectPage& page, size_t tokens) {
  for (std::vector<std::string>* labels : {&page.source, &page.target})
    if (labels->size() > tokens) labels->resize(tokens);
  for (AttentionMap& map : page.maps)
    for (auto* matrix : {&map.weights, &map.logits}) {
      if (matrix->size() > tokens) matrix->resize(tokens);
      for (auto& row : *matrix)
        if (row.size() > tokens) row.resize(tokens);
    }
}

InspectPage inspect_translator(const InspectOptions& options) {
  if (!options.text.empty())
    throw UsageError("--text",
                     "is for language models; leave it out for a translator, whose development text is read.");
  const torch::NoGradGuard no_grad;
  LoadedTranslator loaded = load_translator(options.model, {options.allow_nonfinite, options.device});
  DevelopmentText text = development_text(loaded, "", options.windows);
  const TranslationBatches batches(loaded.config, text.data);
  std::vector<TranslationBatch> pairs;  // one at a time: no padding
  for (size_t i = 0; i < text.pairs.source.size(); ++i)
    pairs.push_back(batches.all({{text.pairs.source[i]}, {text.pairs.target[i]}}, text.data).front());
  InspectPage page = page_of(loaded, parameter_count(loaded.model));
  page.sequences = static_cast<int64_t>(pairs.size());
  page.text = concat("the development text of ", loaded.config.data.source);
  page.found = inspect(loaded.model, pairs);
  const auto fits = std::find_if(pairs.begin(), pairs.end(), [&](const TranslationBatch& pair) {
    return std::max(pair.source.tokens_bs.size(1), pair.inputs_bt.size(1)) <= options.tokens;
  });
  const TranslationBatch& shown = fits == pairs.end() ? pairs.front() : *fits;
  page.maps = attention_maps(loaded.model, shown);
  page.source = labels_of(loaded.vocabulary, shown.source.tokens_bs);
  page.target = labels_of(loaded.vocabulary, shown.inputs_bt);
  cut(page, static_cast<size_t>(options.tokens));
  page.warnings = Watchdog(0, bounds_logits(loaded.config.norm)).after_probe(loaded.step, page.found.readings);
  return page;
}

Exit inspect_model(const InspectOptions& options) {
  use_threads(options.threads);
  InspectPage page = is_translator(options.model) ? inspect_translator(options) : inspect_language_model(options);
  for (const std::string& each : options.heads) page.heads.push_back(parse_head(each, page.found));
  if (page.heads.empty()) page.heads = notable_heads(page.found.readings);

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
  print_wrapped(inspect_verdict(page));
  const Table table = attention_table(page);
  print_line(concat("\n", table.caption, ", over ", sequences_text(page), " of ", page.text, "; loss ",
                    fixed(page.found.loss, 4), " nats per token\n", plain_text(table)));
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
  verb->add_option(
          "--head", options->heads,
          "the head that the page shows first, and further ones whose maps the data has; of a translator such "
          "as cross.0.1; default: those with the lowest and highest entropy and the one with the largest logit")
      ->type_name("LAYER.HEAD");
  verb->add_option("--windows", options->windows, "windows, of a translator pairs, to measure")->check(whole_number(1));
  verb->add_option("--tokens", options->tokens, "tokens to draw, from the start of the first window or of a pair")
      ->check(whole_number(2, 256));
  verb->add_option("-o,--out", options->out,
                   "page to write; its data is written next to it as .json; default DIR/inspect.html")
      ->type_name("FILE");
  verb->add_option("--threads", options->threads, "threads, 0 for all cores")->check(whole_number(0));
  verb->add_flag("--json", options->json, "print the data on standard output");
  add_device(*verb, options->device);
  add_allow_nonfinite(*verb, options->allow_nonfinite);
  verb->footer(
      "Examples:\n"
      "  normlab inspect runs/lp3\n"
      "  normlab inspect runs/gl-en\n"
      "  normlab inspect runs/lp3 --text play.txt --head 0.1 --head 2.3 --out play.html\n"
      "`normlab config explain metrics` defines what is measured.");
  verb->callback([options, &exit] { exit = inspect_model(*options); });
}

}  // namespace normlab
