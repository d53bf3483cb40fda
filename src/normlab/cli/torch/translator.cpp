#include "normlab/cli/torch/translator.h"

#include <cmath>
#include <filesystem>

#include "normlab/base/file.h"
#include "normlab/base/terminal.h"
#include "normlab/base/text.h"
#include "normlab/cli/signals.h"
#include "normlab/cli/torch/verbs.h"
#include "normlab/config/load_data.h"
#include "normlab/models/translate.h"
#include "normlab/probe/step_probe.h"
#include "normlab/probe/watchdog.h"
#include "normlab/study/present/scaling_tables.h"
#include "normlab/train/bleu_of_text.h"
#include "normlab/train/checkpoint.h"
#include "normlab/train/translation_batches.h"

namespace normlab {
namespace {

namespace fs = std::filesystem;

struct DevelopmentText {
  TranslationData data;
  ParallelText pairs;
};

DevelopmentText development_text(const LoadedTranslator& loaded, const std::string& folder, int most) {
  Config config = loaded.config;
  if (!folder.empty()) config.data.source = folder;
  TranslationData data = load_pairs(config);
  data.vocabulary = loaded.vocabulary;
  ParallelText pairs = data.dev;
  if (most > 0 && pairs.source.size() > static_cast<size_t>(most))
    pairs.source.resize(static_cast<size_t>(most)), pairs.target.resize(static_cast<size_t>(most));
  return {std::move(data), std::move(pairs)};
}

// "encoder 0" and the readings that a newcomer looks at first.
Table attention_table(const std::vector<Reading>& readings) {
  constexpr Quantity shown[] = {Quantity::relative_entropy, Quantity::saturated, Quantity::max_logit, Quantity::gain};
  Table table{"Attention, one row per layer", {{"attention", "attention", Align::left, Best::none}}, {}};
  for (const Quantity quantity : shown) table.columns.push_back({row_of(quantity).key});
  for (const Stack stack : {Stack::encoder, Stack::decoder, Stack::cross})
    for (int layer = 0;; ++layer) {
      std::vector<Cell> row = {text_cell(describe({stack, layer}))};
      bool any = false;
      for (const Quantity quantity : shown) {
        double value = std::nan("");
        for (const Reading& each : readings)
          if (each.quantity == quantity && each.stack == stack && each.layer == layer && each.head < 0)
            value = each.value, any = true;
        row.push_back(number_cell(value, 3));
      }
      if (!any) break;
      table.rows.push_back(std::move(row));
    }
  return table;
}

}  // namespace

bool is_translator(const std::string& model) {
  const fs::path config = fs::path(model) / "config.toml";
  return fs::exists(config) && stored_config(config).translation.wanted();
}

Exit evaluate_translator(const TranslatorEval& options) {
  const torch::NoGradGuard no_grad;
  const LoadedTranslator loaded = load_translator(options.model);
  const TranslationConfig& translation = loaded.config.translation;
  DevelopmentText text = development_text(loaded, options.data, options.pairs);
  double total = 0.0;
  int64_t words = 0;
  for (const TranslationBatch& batch : TranslationBatches(loaded.config, text.data).all(text.pairs, text.data)) {
    if (stop_requested()) return Exit::stopped;
    total += loaded.model.loss_sum(batch, Pass{}).item<double>();
    words += batch.words();
  }
  const double loss = total / static_cast<double>(words);
  constexpr size_t sentences_at_once = 64;
  const auto lines =
      translate_lines(loaded.model, text.data.vocabulary, text.pairs.source,
                      {.beam = translation.beam, .length_penalty = translation.length_penalty, .stop = stop_requested},
                      sentences_at_once);
  if (lines.size() != text.pairs.source.size()) return Exit::stopped;
  std::vector<std::string> output;
  for (const TranslatedLine& line : lines)
    output.push_back(line.alternatives.empty() ? "" : line.alternatives.front().text);
  const double bleu = bleu_of_text(output, text.pairs.target, translation.bleu);
  if (options.json) {
    print_json({{"checkpoint", loaded.folder.string()},
                {"step", loaded.step},
                {"loss", loss},
                {"perplexity", std::exp(loss)},
                {"bleu", bleu},
                {"pairs", text.pairs.source.size()},
                {"tokens", words}});
    return Exit::done;
  }
  print_labelled("checkpoint", concat(loaded.folder.string(), " (step ", loaded.step, ")"), 12);
  print_labelled("loss", concat(fixed(loss, 4), " nats per subword over ", words, " subwords"), 12);
  print_labelled("perplexity", concat(fixed(std::exp(loss), 4), " per subword"), 12);
  print_labelled("BLEU", concat(fixed(bleu, 2), " over ", text.pairs.source.size(), " pairs, beam ", translation.beam),
                 12);
  return Exit::done;
}

Exit inspect_translator(const TranslatorInspection& options) {
  const torch::NoGradGuard no_grad;
  LoadedTranslator loaded = load_translator(options.model);
  DevelopmentText text = development_text(loaded, "", options.pairs);
  const std::vector<TranslationBatch> batches = TranslationBatches(loaded.config, text.data).all(text.pairs, text.data);
  const TranslationBatch& batch = batches.front();
  StepProbe probe(loaded.model, {.batch_rows = {batch.rows()}});
  const double loss =
      loaded.model.loss_sum(batch, {.observer = &probe}).item<double>() / static_cast<double>(batch.words());
  const std::vector<Reading> readings = probe.readings();
  nlohmann::ordered_json json = {{"model", loaded.folder.string()},
                                 {"scheme", loaded.config.norm.name},
                                 {"step", loaded.step},
                                 {"pairs", batch.rows()},
                                 {"loss", loss}};
  for (const Reading& reading : readings) json["readings"][name_of(reading)] = reading.value;
  const fs::path out = options.out.empty() ? fs::path(options.model) / "inspect.json" : fs::path(options.out);
  write_file_atomically(out, json.dump(2) + "\n");
  if (options.json) {
    print_json(json);
    return Exit::done;
  }
  const Table table = attention_table(readings);
  print_line(concat(table.caption, ", over ", batch.rows(), " pairs of the development text; loss ", fixed(loss, 4),
                    " nats per subword\n", plain_text(table)));
  for (const std::string& line : Watchdog(0, bounds_logits(loaded.config.norm)).after_probe(loaded.step, readings))
    print_line(concat(warning_label(STDOUT_FILENO), line));
  print_line(concat("\ndata: ", out.string(), ", with every head; pages are for language models"));
  return Exit::done;
}

}  // namespace normlab
