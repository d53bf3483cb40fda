// Results of a study: what each trial left in its folder, as far as it got.
#pragma once

#include <cstdint>
#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include "normlab/study/run/trial.h"

namespace normlab {

struct EvalPoint {
  int64_t step = 0;
  double loss = 0;          // validation loss
  double wall_seconds = 0;  // of training so far
  double cpu_seconds = 0;   // the same as processor time
};

struct BleuPoint {
  int64_t step = 0;
  double bleu = 0;  // of the development text
};

// Of one layer: a learned gain, or a learned p.
struct LayerValue {
  int layer = -1;  // -1: one for all layers
  double value = 0;
};

// Of one probe, over all layers.
struct AttentionPoint {
  int64_t step = 0;
  double max_logit = 0;         // largest of the layers
  double relative_entropy = 0;  // mean over the layers
};

struct TrialResult {
  size_t variant = 0;
  int fold = 0;
  int64_t seed = 0;
  std::string folder = {};  // relative to the study's
  TrialRecord record = {};
  std::vector<EvalPoint> curve = {};           // rising steps, finite losses; never empty when finished
  std::vector<AttentionPoint> attention = {};  // rising steps; empty without probe.every
  std::vector<BleuPoint> bleus = {};           // of a translator, rising steps
  std::optional<double> test_bleu = {};        // of its best checkpoint
  // Learned, at the latest checkpoint; a mean where heads have their own.
  std::vector<LayerValue> gains = {}, p = {};
};

// Programs and machines that ran the trials, each as a line of text.
struct Provenance {
  std::set<std::string> versions, machines, kernels;
  std::string first_start, last_start;  // UTC; empty when no trial was begun
};

struct StudyResults {
  Plan plan;
  std::vector<TrialResult> trials;  // in the plan's order
  Provenance provenance = {};
  size_t without_gains = 0;  // finished trials whose checkpoint could not be read
  size_t tuning_trials = 0;  // of [study.tune] that have ended
  double tuning_cpu_seconds = 0.0, trials_cpu_seconds = 0.0;
};

// A trial that cannot be read counts as damaged, and says why.
StudyResults load_results(const Plan& plan);

// Curve, probes and BLEU from the metrics of a run; nothing when it has none yet. DataError when they are damaged.
void read_metrics(const std::filesystem::path& run, TrialResult& result);
// Of the sessions of a run, where it has a manifest.
void add_provenance(Provenance& provenance, const std::filesystem::path& manifest);

bool is_finished(const TrialResult& trial);
double best_loss(const TrialResult& trial);  // lowest of its curve

}  // namespace normlab
