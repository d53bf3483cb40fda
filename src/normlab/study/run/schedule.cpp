#include "normlab/study/run/schedule.h"

#include <algorithm>

#include "normlab/base/cores.h"
#include "normlab/config/flops.h"
#include "normlab/config/load_data.h"
#include "normlab/data/folds.h"
#include "normlab/study/run/tuning.h"

namespace normlab {

StudyText text_of(const Plan& plan, const StopToken& stop) {
  const Config& config = plan.trials.front().config;
  if (config.translation.wanted()) {
    const TranslationData data = load_pairs(config);
    return {.sha256 = data.sha256, .vocab_size = data.vocabulary.size()};
  }
  const Corpus corpus = load_text(config, stop);
  return {.sha256 = corpus.sha256,
          .vocab_size = corpus.tokenizer.vocab_size(),
          .tokens = static_cast<int64_t>(corpus.tokens.size())};
}

StudyText measured_text_of(const Plan& plan) {
  const CorpusSize size = measure_text(plan.trials.front().config);
  return {.sha256 = "", .vocab_size = size.vocab_size, .tokens = size.tokens, .estimated = size.estimated};
}

std::vector<double> flops_of(const Plan& plan, const StudyText& text) {
  std::vector<double> flops;
  for (const Trial& trial : plan.trials) {
    const int folds = trial.config.data.folds;
    if (!trial.config.translation.wanted())
      require_windows(make_split(text.tokens, folds, trial.fold), trial.config.model.seq_len);
    // Folds may differ by a token; that must not put one before the other.
    flops.push_back(flops_of_run(trial.config, text.vocab_size, text.tokens / folds));
  }
  return flops;
}

int default_jobs(const Plan& plan) {
  const int threads = plan.trials.front().config.train.threads;
  return threads > 0 ? std::max(1, core_count() / threads) : 1;
}

std::vector<const Trial*> queue_of(const Plan& plan, const StudyProgress& progress, const std::vector<double>& flops) {
  std::vector<const Trial*> queue;
  for (const Trial& trial : plan.trials) {
    const TrialRecord& record = progress.record(trial);
    if (!record.ended() && record.status != TrialStatus::damaged) queue.push_back(&trial);
  }
  std::stable_sort(queue.begin(), queue.end(),
                   [&](const Trial* a, const Trial* b) { return flops[a->number - 1] > flops[b->number - 1]; });
  return queue;
}

TuningCost cost_of_tuning(const Plan& plan, const StudyText& text) {
  if (!plan.spec.tune.wanted()) return {};
  const Plan tuning = tuning_plan(plan);
  return {.trials = tuning.trials.size(), .flops_left = StudyProgress(tuning, flops_of(tuning, text)).flops_left()};
}

}  // namespace normlab
