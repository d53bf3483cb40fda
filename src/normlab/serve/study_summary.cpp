#include "normlab/serve/study_summary.h"

#include <algorithm>

#include "normlab/base/error.h"
#include "normlab/base/text.h"
#include "normlab/study/analyse/study_text.h"

namespace normlab {
namespace {

namespace fs = std::filesystem;

struct Speed {
  double seconds = 0.0, steps = 0.0;
  void add(const RunSummary& run) {
    if (run.train_seconds > 0) seconds += run.train_seconds, steps += static_cast<double>(run.step);
  }
  std::optional<double> per_step() const { return steps > 0 ? std::optional(seconds / steps) : std::nullopt; }
};

// Steps left times seconds per step: of the variant where it has a trial that has begun, else of all trials.
std::optional<double> work_left(const Plan& plan, const std::vector<RunSummary>& trials) {
  Speed all;
  std::vector<Speed> variants(plan.variants.size());
  for (size_t i = 0; i < trials.size(); ++i) all.add(trials[i]), variants[plan.trials[i].variant].add(trials[i]);
  if (!all.per_step()) return std::nullopt;
  double seconds = 0.0;
  for (size_t i = 0; i < trials.size(); ++i) {
    if (trials[i].ended()) continue;
    const double steps = static_cast<double>(std::max<int64_t>(0, trials[i].max_steps - trials[i].step));
    seconds += steps * variants[plan.trials[i].variant].per_step().value_or(*all.per_step());
  }
  return seconds;
}

}  // namespace

std::string StudySummary::progress_text() const {
  std::string text = concat(ended, " of ", plural(trials, "trial"));
  if (running > 0) text += concat(", ", running, " running");
  if (diverged > 0) text += concat(", ", diverged, " diverged");
  if (crashed > 0) text += concat(", ", crashed, " crashed");
  return text;
}

std::vector<RunSummary> trials_of(const Plan& plan, RunSummaries& runs, const HeldLocks& locks) {
  std::vector<RunSummary> trials;
  for (const Trial& trial : plan.trials) trials.push_back(runs.of(trial.folder, locks, &trial.config));
  return trials;
}

StudySummary summarise(const Plan& plan, const std::vector<RunSummary>& trials, const HeldLocks& locks) {
  StudySummary summary{.title = plan.spec.study.title, .trials = trials.size()};
  double done = 0.0, all = 0.0;
  for (size_t i = 0; i < trials.size(); ++i) {
    const RunSummary& trial = trials[i];
    summary.ended += trial.ended();
    summary.running += trial.state == RunState::running;
    summary.diverged += trial.state == RunState::diverged;
    summary.crashed += trial.state == RunState::crashed || trial.state == RunState::damaged;
    summary.changed = std::max(summary.changed, trial.changed);
    done += trial.share() * static_cast<double>(trial.max_steps);
    all += static_cast<double>(trial.max_steps);
    if (trial.best_loss && (!summary.best_loss || *trial.best_loss < *summary.best_loss)) {
      summary.best_loss = trial.best_loss;
      summary.best_variant = plan.variants[plan.trials[i].variant].label;
    }
  }
  summary.share = all > 0 ? done / all : 0.0;
  const bool held = locks.in_use(plan.folder, "study.lock", 1e9);
  if (summary.ended == summary.trials)
    summary.state = RunState::finished;
  else if (held || summary.running > 0)
    summary.state = RunState::running;
  else
    summary.state = summary.changed > 0 ? RunState::stopped : RunState::waiting;
  if (summary.running > 0)
    if (const auto work = work_left(plan, trials)) summary.seconds_left = *work / static_cast<double>(summary.running);
  return summary;
}

const Plan& StudySummaries::plan_of(const fs::path& study) {
  const FileStamp spec = stamp_of(study / "study.toml");
  const auto found = kept_.find(study.string());
  // Before it is tuned, a plan changes with what its tuning trials find.
  if (found != kept_.end() && found->second.spec == spec && found->second.plan.is_tuned()) return found->second.plan;
  if (!folder_.holds(study / "study.toml"))
    throw DataError(folder_.relative(study), "study.toml is missing, or a link that leads out of the folder.");
  return kept_.insert_or_assign(study.string(), Kept{spec, load_plan(study)}).first->second.plan;
}

StudySummary StudySummaries::of(const fs::path& study, RunSummaries& runs, const HeldLocks& locks) {
  try {
    const Plan& plan = plan_of(study);
    return summarise(plan, trials_of(plan, runs, locks), locks);
  } catch (const Error& error) {
    return {.state = RunState::damaged, .problem = error.what(), .changed = stamp_of(study / "study.toml").seconds};
  }
}

std::string StudySummaries::fingerprint(const fs::path& study, const HeldLocks& locks) {
  std::string text = concat(text_of(stamp_of(study / "study.toml")), locks.in_use(study, "study.lock", 1e9));
  try {
    for (const Trial& trial : plan_of(study).trials) text += RunSummaries::fingerprint(trial.folder, locks);
  } catch (const Error& error) {
    text += error.what();
  }
  return text;
}

}  // namespace normlab
