// normlab score: BLEU, chrF, TER of translations, and whether one output is better than another.
#include <memory>

#include "base/text.h"
#include "cli/score_metrics.h"
#include "cli/verbs.h"
#include "data/text_lines.h"
#include "stats/significance.h"

namespace normlab {
namespace {

struct ScoreOptions {
  std::vector<std::string> references, outputs, metrics;
  std::string tokenizer = "13a", smoothing = "exp", test;
  std::optional<double> smooth_value;
  int trials = 0;
  uint64_t seed = 12345;
  bool json = false;
};

std::vector<std::string> read_text(const std::string& path) { return read_lines(path == "-" ? "/dev/stdin" : path); }

void require_same_length(const std::string& path, size_t lines, const std::string& reference, size_t expected) {
  if (lines == expected) return;
  throw DataError(path, str("has ", lines, " lines, ", reference, " has ", expected, ": one of them ends at line ",
                            std::min(lines, expected), ". Every line needs its reference."));
}

template <size_t n>
size_t find_name(const std::string_view (&names)[n], const std::string& name, const std::string& option) {
  for (size_t i = 0; i < n; ++i)
    if (names[i] == name) return i;
  const std::vector<std::string> known(std::begin(names), std::end(names));
  throw UsageError(option, str("got '", name, "', expected ", join(known, ", "), "."));
}

ScoreSettings settings_of(const ScoreOptions& options) {
  ScoreSettings settings{.tokenizer = find_score_tokenizer(options.tokenizer)};
  settings.bleu.smoothing = static_cast<BleuSmoothing>(find_name(bleu_smoothings, options.smoothing, "--smooth"));
  settings.bleu.value = options.smooth_value;
  if (options.smooth_value && !smoothing_value({settings.bleu.smoothing, {}}))
    throw UsageError("--smooth-value",
                     str("has no meaning with --smooth ", options.smoothing, "; expected floor or add-k."));
  return settings;
}

SignificanceOptions test_of(const ScoreOptions& options) {
  if (options.outputs.size() < 2 && !options.test.empty())
    throw UsageError("--test", "compares outputs with the first one; got one output, expected two or more.");
  SignificanceOptions test{.seed = options.seed};
  if (!options.test.empty()) test.test = static_cast<PairedTest>(find_name(paired_tests, options.test, "--test"));
  test.trials = options.trials > 0 ? options.trials : test.test == PairedTest::bootstrap ? 1000 : 10000;
  return test;
}

// As sacreBLEU's, except for the name of the program at its end.
std::string full_signature(const MetricResult& result, size_t references, const SignificanceOptions* test) {
  std::string text = str("nrefs:", references);
  if (test) text += str(test->test == PairedTest::bootstrap ? "|bs:" : "|ar:", test->trials, "|seed:", test->seed);
  return str(text, "|", result.signature, "|version:normlab-", NORMLAB_VERSION);
}

using OutputScores = std::vector<MetricResult>;  // of one output, by metric

nlohmann::ordered_json scores_json(const OutputScores& scores, size_t references) {
  nlohmann::ordered_json out;
  for (const MetricResult& result : scores) {
    nlohmann::ordered_json row = {{"score", result.score(sum_rows(result.rows))}};
    if (!result.signature.empty()) row["signature"] = full_signature(result, references, nullptr);
    row.update(result.details);
    out[result.name] = row;
  }
  return out;
}

void print_scores(const OutputScores& scores, size_t references) {
  for (const MetricResult& result : scores)
    print_line(result.signature.empty()
                   ? result.line
                   : str(result.name, "|", full_signature(result, references, nullptr), " = ", result.line));
}

nlohmann::ordered_json comparison_json(const Significance& found, const std::string& signature) {
  nlohmann::ordered_json row = {{"difference", found.difference}, {"p_value", found.p_value}};
  if (found.interval.level > 0) row["interval"] = {found.interval.low, found.interval.high};
  if (!signature.empty()) row["signature"] = signature;
  return row;
}

std::string comparison_line(const std::string& name, const Significance& found) {
  std::string label = name;
  label.resize(std::max<size_t>(12, label.size() + 2), ' ');
  std::string line = str("  ", label, found.difference < 0 ? "" : "+", fixed(found.difference, 4));
  if (found.interval.level > 0)
    line += str("  95 % of resamples in [", fixed(found.interval.low, 4), ", ", fixed(found.interval.high, 4), "]");
  return str(line, "  p = ", fixed(found.p_value, 4));
}

class Scoring {
 public:
  explicit Scoring(const ScoreOptions& options) : options_(options), test_(test_of(options)) {
    const ScoreSettings settings = settings_of(options);
    std::vector<const ScoreMetric*> metrics;
    for (const std::string& key : options.metrics) metrics.push_back(&find_score_metric(key));
    if (metrics.empty())
      for (const ScoreMetric& row : score_metrics) metrics.push_back(&row);
    ScoredTexts texts;
    for (const std::string& path : options.references) {
      texts.references.push_back(read_text(path));
      require_same_length(path, texts.references.back().size(), options.references[0], texts.references[0].size());
    }
    for (const std::string& path : options.outputs) {
      texts.output = read_text(path);
      require_same_length(path, texts.output.size(), options.references[0], texts.references[0].size());
      OutputScores& scores = scores_.emplace_back();
      for (const ScoreMetric* metric : metrics) scores.push_back(metric->evaluate(texts, settings));
    }
    segments_ = texts.output.size();
  }

  void print() const {
    for (size_t i = 0; i < scores_.size(); ++i) {
      if (scores_.size() > 1) print_line(str(i == 0 ? "" : "\n", options_.outputs[i]));
      print_scores(scores_[i], options_.references.size());
    }
    for (size_t i = 1; i < scores_.size(); ++i) {
      print_line(str("\n", options_.outputs[i], " against ", options_.outputs[0], ": paired ",
                     paired_tests[static_cast<size_t>(test_.test)], ", ", test_.trials, " trials, seed ", test_.seed));
      for (size_t metric = 0; metric < scores_[i].size(); ++metric)
        print_line(comparison_line(scores_[i][metric].name, compare(i, metric)));
    }
  }

  nlohmann::ordered_json to_json() const {
    nlohmann::ordered_json outputs = nlohmann::ordered_json::array(), tests = nlohmann::ordered_json::array();
    for (size_t i = 0; i < scores_.size(); ++i) {
      outputs.push_back(
          {{"output", options_.outputs[i]}, {"scores", scores_json(scores_[i], options_.references.size())}});
      if (i == 0) continue;
      nlohmann::ordered_json rows;
      for (size_t metric = 0; metric < scores_[i].size(); ++metric) {
        const MetricResult& result = scores_[i][metric];
        rows[result.name] =
            comparison_json(compare(i, metric),
                            result.signature.empty() ? "" : full_signature(result, options_.references.size(), &test_));
      }
      tests.push_back({{"output", options_.outputs[i]},
                       {"baseline", options_.outputs[0]},
                       {"test", paired_tests[static_cast<size_t>(test_.test)]},
                       {"trials", test_.trials},
                       {"seed", test_.seed},
                       {"metrics", rows}});
    }
    return {{"segments", segments_}, {"references", options_.references}, {"outputs", outputs}, {"tests", tests}};
  }

 private:
  Significance compare(size_t output, size_t metric) const {
    const MetricResult& result = scores_[output][metric];
    return compare_outputs(scores_[0][metric].rows, result.rows, result.score, test_);
  }

  const ScoreOptions& options_;
  SignificanceOptions test_;
  std::vector<OutputScores> scores_;
  size_t segments_ = 0;
};

}  // namespace

void add_score(CLI::App& app, Exit& exit) {
  auto* verb = app.add_subcommand("score", "BLEU, chrF and TER of translations, and tests between two of them");
  auto options = std::make_shared<ScoreOptions>();
  verb->add_option("-r,--reference", options->references, "reference text, plain or gzip; repeat it for several")
      ->required()
      ->allow_extra_args(false)
      ->type_name("FILE");
  verb->add_option("outputs", options->outputs,
                   "translations to score, - for standard input; the first is the baseline")
      ->required()
      ->type_name("FILE");
  verb->add_option("-m,--metric", options->metrics,
                   "bleu, chrf, chrf++, ter or multi-bleu; repeat it for several; default: all")
      ->allow_extra_args(false)
      ->type_name("METRIC");
  verb->add_option("--tokenize", options->tokenizer, "words of BLEU: 13a (default), intl, char or none")
      ->type_name("NAME");
  verb->add_option("--smooth", options->smoothing, "of BLEU without matches: exp (default), floor, add-k or none")
      ->type_name("NAME");
  verb->add_option("--smooth-value", options->smooth_value, "of floor (default 0.1) and add-k (default 1)")
      ->check(CLI::PositiveNumber)
      ->type_name("X");
  verb->add_option("--test", options->test, "between outputs: bootstrap (default) or randomization")->type_name("NAME");
  verb->add_option("--trials", options->trials, "of the test; default 1000 for bootstrap, 10000 for randomization")
      ->check(CLI::Range(1, 10'000'000))
      ->type_name("N");
  verb->add_option("--seed", options->seed, "of the test's draws, default 12345")->check(CLI::NonNegativeNumber);
  verb->add_flag("--json", options->json, "machine-readable output");
  verb->footer(
      "Examples:\n  normlab score --reference test.en translated.en\n"
      "  normlab score -r test.en -m bleu --tokenize intl baseline.en ours.en --test randomization --json");
  verb->callback([options, &exit] {
    const Scoring scoring(*options);
    options->json ? print_json(scoring.to_json()) : scoring.print();
    exit = Exit::done;
  });
}

}  // namespace normlab
