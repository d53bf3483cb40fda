// Analysis of a study: means over folds, paired differences to a baseline with their tests, convergence speed.
//
// The block is the fold. Seeds of one fold share its data and are averaged first; a trial is paired with the baseline's
// trial of the same fold and seed. A study of one fold and several seeds has its seeds as blocks: they say whether a
// difference is chance of initialisation and batches, on this fold. Only finished trials count: what is missing leaves
// its pair out, no more.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "normlab/stats/bootstrap.h"
#include "normlab/stats/convergence.h"
#include "normlab/stats/friedman.h"
#include "normlab/stats/paired.h"
#include "normlab/study/analyse/results.h"

namespace normlab {

enum class BlockKind { fold, seed };
BlockKind block_of(const Plan& plan);
const char* name_of(BlockKind block);
int64_t number_of(BlockKind block, const TrialResult& trial);  // its fold or its seed

struct AnalysisOptions {
  std::string baseline = {};          // label of a variant; empty: the study's own
  std::optional<double> target = {};  // loss to be reached; without it the baseline's final loss in the same trial
  std::vector<size_t> only = {};      // variants to compare with the baseline; empty: all
};

struct VariantSummary {
  size_t planned = 0, finished = 0, diverged = 0;  // trials
  std::vector<int64_t> blocks;                     // with a finished trial, ascending
  std::vector<double> final_losses;                // one for each of these blocks
  std::optional<double> mean, standard_error;      // of the final losses over blocks
  std::optional<double> mean_best;                 // of each trial's lowest validation loss
  std::optional<double> average_rank;              // among the variants, 1 is the lowest loss
  std::vector<double> wall_seconds, cpu_seconds;   // of each finished trial's training
  std::optional<Reached> reached;                  // when its blocks reach the target, on average; absent unless all do
};

// A variant against the baseline, over the blocks that both have finished.
struct Comparison {
  size_t variant = 0;
  std::vector<int64_t> blocks;
  std::vector<double> differences;  // of final losses, one a block; below 0 the variant is better
  std::optional<double> mean;
  std::optional<double> relative;  // mean difference as a share of the baseline's loss in the same blocks
  // Absent with fewer than two blocks, or when all differences are the same number but 0.
  std::optional<TTest> t;        // the one that leads: corrected by Nadeau and Bengio for folds, plain for seeds
  std::optional<double> holm_p;  // its p value, corrected for the number of comparisons
  std::optional<Interval>
      adjusted;  // of the mean difference, corrected likewise: excludes 0 where holm_p is significant
  std::optional<WilcoxonTest> wilcoxon;
  std::optional<BootstrapInterval> bootstrap;
  std::optional<SpeedUp> in_steps, in_seconds;  // absent when a run starts at the target; level as adjusted
};

struct Analysis {
  size_t baseline = 0;
  std::optional<double> target;  // as asked for
  BlockKind block = BlockKind::fold;
  double test_train_ratio = 0;  // of the corrected tests; 0 for seeds, which share no more than the fold they speak of
  std::vector<VariantSummary> variants = {};
  std::vector<Comparison> comparisons = {};  // with the baseline, in the order of the variants
  std::optional<FriedmanTest> friedman = {};
  std::vector<size_t> ranked = {};  // the variants of the Friedman test
  size_t ranked_blocks = 0;         // that all of these have finished
};
Analysis analyse(const StudyResults& results, const AnalysisOptions& options = {});

inline constexpr double significance = 0.05;  // Holm-corrected p values up to this count as a difference
bool differs(const Comparison& comparison);

// The lowest of those shown to be better than the baseline, else the lowest; null when nothing can be compared yet.
const Comparison* best_comparison(const Analysis& analysis);

}  // namespace normlab
