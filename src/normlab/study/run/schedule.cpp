#include "normlab/study/run/schedule.h"

#include <algorithm>
#include <thread>

#include "normlab/config/flops.h"
#include "normlab/config/load_data.h"
#include "normlab/data/folds.h"
#include "normlab/study/run/tuning.h"

namespace normlab {
namespace {

StudyText text_of_language_models(const Plan& plan) {
  const Corpus corpus = load_text(plan.trials.front().config);
  StudyText text{corpus.sha256, corpus.tokenizer.vocab_size()};
  for (const Trial& trial : plan.trials) {
    const auto n_tokens = static_cast<int64_t>(corpus.tokens.size());
    const int folds = trial.config.data.folds;
    require_windows(make_split(n_tokens, folds, trial.fold), trial.config.model.seq_len);
    // Folds may differ by a token; that must not put one before the other.
    text.flops.push_back(flops_of_run(trial.config, text.vocab_size, n_tokens / folds));
  }
  return text;
}

}  // namespace

StudyText text_of(const Plan& plan) {
  if (!plan.trials.front().config.translation.wanted()) return text_of_language_models(plan);
  const TranslationData data = load_pairs(plan.trials.front().config);
  StudyText text{data.sha256, data.vocabulary.size()};
  for (const Trial& trial : plan.trials) text.flops.push_back(flops_of_run(trial.config, text.vocab_size, 0));
  return text;
}

int default_jobs(const Plan& plan) {
  const int cores = static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
  const int threads = plan.trials.front().config.train.threads;
  return threads > 0 ? std::max(1, cores / threads) : 1;
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

TuningCost cost_of_tuning(const Plan& plan) {
  if (!plan.spec.tune.wanted()) return {};
  const Plan tuning = tuning_plan(plan);
  const std::vector<double> flops = text_of(tuning).flops;
  return {.trials = tuning.trials.size(), .flops_left = StudyProgress(tuning, flops).flops_left()};
}

}  // namespace normlab
