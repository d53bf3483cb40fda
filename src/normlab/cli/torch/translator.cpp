#include "normlab/cli/torch/translator.h"

#include <cmath>
#include <filesystem>

#include "normlab/base/text.h"
#include "normlab/cli/signals.h"
#include "normlab/cli/torch/verbs.h"
#include "normlab/config/load_data.h"
#include "normlab/models/translate.h"
#include "normlab/train/bleu_of_text.h"
#include "normlab/train/translation_batches.h"

namespace normlab {
namespace {

namespace fs = std::filesystem;

}  // namespace

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

bool is_translator(const std::string& model) {
  const fs::path config = fs::path(model) / "config.toml";
  return fs::exists(config) && stored_config(config).translation.wanted();
}

Exit evaluate_translator(const TranslatorEval& options) {
  const torch::NoGradGuard no_grad;
  const LoadedTranslator loaded = load_translator(options.model, {options.allow_nonfinite, options.device});
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

}  // namespace normlab
