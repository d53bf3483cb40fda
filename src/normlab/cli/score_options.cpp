#include "normlab/cli/score_options.h"

#include <algorithm>
#include <memory>

#include "normlab/base/error.h"
#include "normlab/base/file.h"
#include "normlab/base/text.h"
#include "normlab/cli/usage.h"
#include "normlab/data/sentencepiece.h"

namespace normlab {
namespace {

template <size_t n>
size_t find_name(const std::string_view (&names)[n], const std::string& name, const std::string& option) {
  for (size_t i = 0; i < n; ++i)
    if (names[i] == name) return i;
  const std::vector<std::string> known(std::begin(names), std::end(names));
  throw UsageError(option, concat("got '", name, "', expected ", join(known, ", "), "."));
}

void set_tokenizer(const ScoreOptions& options, ScoreSettings& settings) {
  for (const ScoreTokenizer& row : score_tokenizers) {
    if (options.tokenizer != row.name) continue;
    if (!options.spm_model.empty())
      throw UsageError("--spm-model",
                       concat("has no meaning with --tokenize ", row.name, ". Add --tokenize flores101."));
    settings.bleu_words = row.split;
    settings.tokenizer = row.name;
    return;
  }
  for (const PieceTokenizer& row : piece_tokenizers) {
    if (options.tokenizer != row.name) continue;
    if (options.spm_model.empty())
      throw UsageError("--tokenize", concat(row.name,
                                            " needs its model of SentencePiece: name the file with --spm-model. "
                                            "sacreBLEU keeps those it has used in ~/.sacrebleu/models."));
    const auto pieces = std::make_shared<SentencePieces>(read_file(options.spm_model), options.spm_model);
    settings.bleu_words = [pieces](std::string_view line) { return split_pieces(line, *pieces); };
    settings.tokenizer = row.signature;
    return;
  }
  throw UsageError("--tokenize", concat("unknown tokeniser; got '", options.tokenizer, "', expected one of ",
                                        score_tokenizer_names(), "."));
}

void add_bleu_options(CLI::App& verb, ScoreOptions& options) {
  const char* const group = "BLEU";
  verb.add_option("--tokenize", options.tokenizer,
                  concat("tokenisation of BLEU, default 13a; one of ", score_tokenizer_names()))
      ->type_name("NAME")
      ->group(group);
  verb.add_option("--spm-model", options.spm_model, "SentencePiece model of the last four")
      ->type_name("FILE")
      ->group(group);
  verb.add_flag("--lowercase", options.settings.lowercase, "lower-case the text; BLEU, not multi-bleu")->group(group);
  verb.add_option("--smooth", options.smoothing, "without matches: exp (default), floor, add-k or none")
      ->type_name("NAME")
      ->group(group);
  verb.add_option("--smooth-value", options.settings.bleu.value, "of floor (default 0.1) and add-k (default 1)")
      ->check(number_above_zero())
      ->type_name("X")
      ->group(group);
}

void add_chrf_options(CLI::App& verb, ScoreOptions& options) {
  const char* const group = "chrF";
  ScoreSettings& settings = options.settings;
  verb.add_option("--chrf-char-order", settings.chrf.character_order, "longest n-grams of characters, default 6")
      ->check(whole_number(0, 100))
      ->type_name("N")
      ->group(group);
  verb.add_option("--chrf-word-order", settings.chrf_word_order, "longest n-grams of words, default 0; of chrf++ 2")
      ->check(whole_number(0, 100))
      ->type_name("N")
      ->group(group);
  verb.add_option("--chrf-beta", settings.chrf.beta, "weight of recall against precision, default 2")
      ->check(whole_number(0, 1000))
      ->type_name("N")
      ->group(group);
  verb.add_flag("--chrf-lowercase", settings.chrf_lowercase, "lower-case the text")->group(group);
  verb.add_flag("--chrf-whitespace", settings.chrf_whitespace, "count white space as characters")->group(group);
  verb.add_flag("--chrf-eps-smoothing", settings.chrf.eps_smoothing, "average over all orders, as chrF++.py does")
      ->group(group);
}

constexpr const char* test_group = "Tests between outputs";

void add_ter_options(CLI::App& verb, ScoreOptions& options) {
  const char* const group = "TER";
  TerWords& ter = options.settings.ter;
  verb.add_flag("--ter-normalized", ter.normalized, "Tercom's tokenisation instead of unchanged words")->group(group);
  verb.add_flag("--ter-no-punct", ter.no_punct, "remove punctuation")->group(group);
  verb.add_flag("--ter-asian-support", ter.asian, "apply the two above to Asian characters too")->group(group);
  verb.add_flag("--ter-case-sensitive", ter.case_sensitive, "keep the case; default: the text is lower-cased")
      ->group(group);
}

void add_test_options(CLI::App& verb, ScoreOptions& options) {
  const char* const group = test_group;
  verb.add_option("--test", options.test, "randomization (default), or bootstrap for an interval")
      ->type_name("NAME")
      ->group(group);
  verb.add_option("--trials", options.trials, "default 10000 for randomization, 1000 for bootstrap")
      ->check(whole_number(1, 10'000'000))
      ->type_name("N")
      ->group(group);
  verb.add_option("--seed", options.seed, "of the draws, default 12345")->check(whole_number(0))->group(group);
}

}  // namespace

void ScoreOptions::add_to(CLI::App& verb) {
  verb.add_option("-r,--reference", references, "reference text, plain or gzip; repeat it for several")
      ->required()
      ->allow_extra_args(false)
      ->type_name("FILE");
  verb.add_option("outputs", outputs, "translations to score, - for standard input; the first is the baseline")
      ->required()
      ->type_name("FILE");
  verb.add_option("-m,--metric", metrics, "bleu, chrf, chrf++, ter or multi-bleu; default: all")
      ->allow_extra_args(false)
      ->type_name("METRIC");
  verb.add_flag("--sentence", sentence, "score every line; BLEU with effective order");
  verb.add_flag("--json", json, "machine-readable output");
  add_bleu_options(verb, *this);
  add_chrf_options(verb, *this);
  add_ter_options(verb, *this);
  add_test_options(verb, *this);
}

std::vector<const ScoreMetric*> chosen_metrics(const ScoreOptions& options, const CLI::App& verb) {
  std::vector<const ScoreMetric*> metrics;
  for (const std::string& key : options.metrics) metrics.push_back(&find_score_metric(key));
  if (metrics.empty())
    for (const ScoreMetric& row : score_metrics)
      if (!options.sentence || row.per_sentence) metrics.push_back(&row);
  for (const ScoreMetric* metric : metrics)
    if (options.sentence && !metric->per_sentence)
      throw UsageError("--sentence", concat(metric->key, " is a score of whole texts. Take bleu."));
  for (const ScoreMetric& row : score_metrics) {
    const auto is_chosen = [&](const ScoreMetric* metric) { return metric->group == std::string_view(row.group); };
    if (*row.group == '\0' || std::ranges::any_of(metrics, is_chosen)) continue;
    for (const CLI::Option* option : verb.get_options())
      if (option->get_group() == row.group && option->count() > 0)
        throw UsageError(option->get_name(), concat("has no meaning without --metric ", row.key, "."));
  }
  return metrics;
}

ScoreSettings settings_of(const ScoreOptions& options) {
  ScoreSettings settings = options.settings;
  set_tokenizer(options, settings);
  settings.bleu.smoothing = static_cast<BleuSmoothing>(find_name(bleu_smoothings, options.smoothing, "--smooth"));
  settings.bleu.effective_order = options.sentence;
  if (settings.bleu.value && !smoothing_value({.smoothing = settings.bleu.smoothing}))
    throw UsageError("--smooth-value",
                     concat("has no meaning with --smooth ", options.smoothing, "; expected floor or add-k."));
  if (settings.chrf.character_order == 0 && settings.chrf_word_order.value_or(0) == 0)
    throw UsageError("--chrf-char-order", "chrF of no characters and no words; expected at least 1, or a word order.");
  if (settings.ter.asian && !settings.ter.normalized && !settings.ter.no_punct)
    throw UsageError("--ter-asian-support", "has no meaning without --ter-normalized or --ter-no-punct.");
  return settings;
}

void require_something_to_test(const ScoreOptions& options, const CLI::App& verb) {
  for (const CLI::Option* option : verb.get_options()) {
    if (option->get_group() != test_group || option->count() == 0) continue;
    if (options.outputs.size() < 2)
      throw UsageError(option->get_name(),
                       "belongs to tests of outputs against the first one; got one output, expected two or more.");
    if (options.sentence)
      throw UsageError(option->get_name(), "belongs to tests of whole texts; leave --sentence out.");
  }
}

SignificanceOptions test_of(const ScoreOptions& options) {
  SignificanceOptions test{.seed = options.seed};
  if (!options.test.empty()) test.test = static_cast<PairedTest>(find_name(paired_tests, options.test, "--test"));
  test.trials = options.trials > 0 ? options.trials : test.test == PairedTest::bootstrap ? 1000 : 10000;
  return test;
}

}  // namespace normlab
