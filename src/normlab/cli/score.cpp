// normlab score: BLEU, chrF, TER of translations, and whether one output is better than another.
#include <algorithm>
#include <memory>

#include "normlab/base/sha256.h"
#include "normlab/base/text.h"
#include "normlab/cli/score_options.h"
#include "normlab/cli/verbs.h"
#include "normlab/data/text_lines.h"

namespace normlab {
namespace {

std::vector<std::string> read_text(const std::string& path) { return read_lines(path == "-" ? "/dev/stdin" : path); }

void require_same_length(const std::string& path, size_t lines, const std::string& reference, size_t expected) {
  if (lines == expected) return;
  throw DataError(path,
                  concat("has ", lines, " lines, ", reference, " has ", expected, ": the shorter one ends at line ",
                         std::min(lines, expected), ". Every line needs its reference."));
}

// As sacreBLEU's, except for the name of the program at its end.
std::string full_signature(const MetricResult& result, size_t references, const SignificanceOptions* test) {
  std::string text = concat("nrefs:", references);
  if (test) text += concat(test->test == PairedTest::bootstrap ? "|bs:" : "|ar:", test->trials, "|seed:", test->seed);
  return concat(text, "|", result.signature, "|version:normlab-", NORMLAB_VERSION);
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

// The lines of one output: a table with a column for each metric, after their signatures.
void print_sentences(const OutputScores& scores, size_t references) {
  std::string names = "line";
  for (const MetricResult& result : scores) {
    print_line(concat("# ", result.name, "|", full_signature(result, references, nullptr)));
    names += concat("\t", result.name);
  }
  print_line(names);
  for (size_t i = 0; i < scores[0].rows.size(); ++i) {
    std::string line = concat(i + 1);
    for (const MetricResult& result : scores) line += concat("\t", fixed(result.score(result.rows[i]), 4));
    print_line(line);
  }
}

nlohmann::ordered_json sentences_json(const OutputScores& scores, size_t references) {
  nlohmann::ordered_json out;
  for (const MetricResult& result : scores) {
    std::vector<double> values;
    for (const std::vector<double>& row : result.rows) values.push_back(result.score(row));
    out[result.name] = {{"signature", full_signature(result, references, nullptr)}, {"scores", values}};
  }
  return out;
}

void print_scores(const OutputScores& scores, size_t references) {
  for (const MetricResult& result : scores)
    print_line(result.signature.empty()
                   ? result.line
                   : concat(result.name, "|", full_signature(result, references, nullptr), " = ", result.line));
}

nlohmann::ordered_json comparison_json(const Significance& found, const std::string& signature) {
  nlohmann::ordered_json row = {
      {"difference", found.difference}, {"p_value", found.p_value}, {"p_sacrebleu", found.p_sacrebleu}};
  if (found.interval.level > 0) row["interval"] = {found.interval.low, found.interval.high};
  if (!signature.empty()) row["signature"] = signature;
  return row;
}

std::string comparison_line(const std::string& name, const Significance& found) {
  std::string label = name;
  label.resize(std::max<size_t>(12, label.size() + 2), ' ');
  std::string line = concat("  ", label, found.difference < 0 ? "" : "+", fixed(found.difference, 4));
  const bool bootstrap = found.interval.level > 0;
  if (bootstrap)
    line += concat("  95 % of resamples in [", fixed(found.interval.low, 4), ", ", fixed(found.interval.high, 4), "]");
  line += concat("  p = ", fixed(found.p_value, 4));
  return bootstrap ? concat(line, " (sacreBLEU's ", fixed(found.p_sacrebleu, 4), ")") : line;
}

class Scoring {
 public:
  Scoring(const ScoreOptions& options, const std::vector<const ScoreMetric*>& metrics)
      : options_(options), test_(test_of(options)) {
    const ScoreSettings settings = settings_of(options);
    ScoredTexts texts;
    for (const std::string& path : options.references) {
      texts.references.push_back(read_text(path));
      require_same_length(path, texts.references.back().size(), options.references[0], texts.references[0].size());
    }
    for (const std::string& path : options.outputs) {
      texts.output = read_text(path);
      require_same_length(path, texts.output.size(), options.references[0], texts.references[0].size());
      scores_.push_back(evaluate(metrics, texts, settings));
    }
    segments_ = texts.output.size();
  }

  void print() const {
    for (size_t i = 0; i < scores_.size(); ++i) {
      if (scores_.size() > 1) print_line(concat(i == 0 ? "" : "\n", options_.outputs[i]));
      (options_.sentence ? print_sentences : print_scores)(scores_[i], options_.references.size());
    }
    if (options_.sentence) return;
    for (size_t i = 1; i < scores_.size(); ++i) {
      print_line(concat("\n", options_.outputs[i], " against ", options_.outputs[0], ": paired ",
                        paired_tests[static_cast<size_t>(test_.test)], ", ", test_.trials, " trials, seed ",
                        test_.seed));
      for (size_t metric = 0; metric < scores_[i].size(); ++metric)
        print_line(comparison_line(scores_[i][metric].name, compare(i, metric)));
    }
  }

  nlohmann::ordered_json to_json() const {
    nlohmann::ordered_json outputs = nlohmann::ordered_json::array();
    for (size_t i = 0; i < scores_.size(); ++i) {
      const auto to_rows = options_.sentence ? sentences_json : scores_json;
      outputs.push_back(
          {{"output", options_.outputs[i]},
           {options_.sentence ? "sentences" : "scores", to_rows(scores_[i], options_.references.size())}});
    }
    nlohmann::ordered_json out = {{"segments", segments_}, {"references", options_.references}, {"outputs", outputs}};
    if (!options_.spm_model.empty())
      out["spm_model"] = {{"file", options_.spm_model}, {"sha256", sha256_file(options_.spm_model)}};
    if (!options_.sentence) out["tests"] = tests_json();
    return out;
  }

 private:
  // Two keys may name the same metric: chrf and chrf++ do with --chrf-word-order.
  static OutputScores evaluate(const std::vector<const ScoreMetric*>& metrics, const ScoredTexts& texts,
                               const ScoreSettings& settings) {
    OutputScores scores;
    for (const ScoreMetric* metric : metrics) {
      MetricResult result = metric->evaluate(texts, settings);
      const bool is_new = std::ranges::find(scores, result.name, &MetricResult::name) == scores.end();
      if (is_new) scores.push_back(std::move(result));
    }
    return scores;
  }

  nlohmann::ordered_json tests_json() const {
    nlohmann::ordered_json tests = nlohmann::ordered_json::array();
    for (size_t i = 1; i < scores_.size(); ++i) {
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
    return tests;
  }

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
  auto* verb = app.add_subcommand("score", "BLEU, chrF and TER of translations, and significance tests");
  auto options = std::make_shared<ScoreOptions>();
  options->add_to(*verb);
  verb->footer(
      "Examples:\n  normlab score --reference test.en translated.en\n"
      "  normlab score -r test.en -m bleu --tokenize intl baseline.en ours.en --json\n"
      "  normlab score -r test.zh -m bleu --tokenize zh --sentence translated.zh");
  verb->callback([options, verb, &exit] {
    require_something_to_test(*options, *verb);
    const Scoring scoring(*options, chosen_metrics(*options, *verb));
    options->json ? print_json(scoring.to_json()) : scoring.print();
    exit = Exit::done;
  });
}

}  // namespace normlab
