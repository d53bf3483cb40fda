// The options of normlab score.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "normlab/cli/score_metrics.h"
#include "normlab/stats/significance.h"

namespace normlab {

struct ScoreOptions {
  std::vector<std::string> references, outputs, metrics;
  std::string tokenizer = "13a", spm_model, smoothing = "exp", test;
  ScoreSettings settings;
  int trials = 0;
  uint64_t seed = 12345;
  bool sentence = false, json = false;

  void add_to(CLI::App& verb);
};

// The metrics to compute. UsageError for an unknown one, and for an option of a metric that is not among them.
std::vector<const ScoreMetric*> chosen_metrics(const ScoreOptions& options, const CLI::App& verb);

// UsageError for an option of the tests when there is one output, or with --sentence.
void require_something_to_test(const ScoreOptions& options, const CLI::App& verb);

ScoreSettings settings_of(const ScoreOptions& options);    // reads the model of SentencePiece, if there is one
SignificanceOptions test_of(const ScoreOptions& options);  // between outputs

}  // namespace normlab
