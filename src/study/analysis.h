// Analysis of a study: means over folds, paired differences to a baseline with their tests, convergence speed.
//
// The unit is the fold. Seeds of one fold share its data and are averaged first; a trial is paired with the baseline's
// trial of the same fold and seed. Only finished trials count: what is missing leaves its pair out, no more.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "stats/bootstrap.h"
#include "stats/convergence.h"
#include "stats/friedman.h"
#include "stats/paired.h"
#include "study/results.h"

namespace normlab {

struct AnalysisOptions {
  std::string baseline = {};          // label of a variant; empty: the study's own
  std::optional<double> target = {};  // loss to be reached; without it the baseline's final loss in the same trial
  std::vector<size_t> only = {};      // variants to compare with the baseline; empty: all
};

struct VariantSummary {
  size_t planned = 0, finished = 0, diverged = 0;  // trials
  std::vector<int> folds;                          // with a finished trial, ascending
  std::vector<double> final_losses;                // one for each of these folds
  std::optional<double> mean, standard_error;      // of the final losses over folds
  std::optional<double> mean_best;                 // of each trial's lowest validation loss
  std::optional<double> average_rank;              // among the variants, 1 is the lowest loss
  std::vector<double> wall_seconds, cpu_seconds;   // of each finished trial's training
  std::optional<Reached> reached;                  // when its folds reach the target, on average; absent unless all do
};

// A variant against the baseline, over the folds that both have finished.
struct Comparison {
  size_t variant = 0;
  std::vector<int> folds;
  std::vector<double> differences;  // of final losses, one a fold; below 0 the variant is better
  std::optional<double> mean;
  std::optional<double> relative;  // mean difference as a share of the baseline's loss in the same folds
  // Absent with fewer than two folds, or when all differences are the same number but 0.
  std::optional<TTest> t;        // Nadeau and Bengio's corrected resampled t-test: the one that leads
  std::optional<double> holm_p;  // its p value, corrected for the number of comparisons
  std::optional<WilcoxonTest> wilcoxon;
  std::optional<BootstrapInterval> bootstrap;
  std::optional<SpeedUp> in_steps, in_seconds;  // absent when a run starts at the target
};

struct Analysis {
  size_t baseline = 0;
  std::optional<double> target;  // as asked for
  double test_train_ratio = 0;   // of the corrected tests
  std::vector<VariantSummary> variants = {};
  std::vector<Comparison> comparisons = {};  // with the baseline, in the order of the variants
  std::optional<FriedmanTest> friedman = {};
  std::vector<size_t> ranked = {};  // the variants of the Friedman test
  size_t ranked_folds = 0;          // that all of these have finished
};
Analysis analyse(const StudyResults& results, const AnalysisOptions& options = {});

inline constexpr double significance = 0.05;  // Holm-corrected p values up to this count as a difference
bool differs(const Comparison& comparison);

// The lowest of those shown to be better than the baseline, else the lowest; null when nothing can be compared yet.
const Comparison* best_comparison(const Analysis& analysis);

}  // namespace normlab
