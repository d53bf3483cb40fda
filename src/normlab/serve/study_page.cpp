#include "normlab/serve/study_page.h"

#include <algorithm>
#include <set>

#include "normlab/base/error.h"
#include "normlab/base/prose.h"
#include "normlab/base/text.h"
#include "normlab/serve/markup.h"
#include "normlab/study/analyse/study_text.h"
#include "normlab/study/present/study_report.h"
#include "normlab/study/run/progress.h"
#include "normlab/study/run/study_folder.h"

namespace normlab {
namespace {

namespace fs = std::filesystem;

constexpr size_t most_evaluations = 1000;

Entry entry_of(const ServedFolder& folder, const Plan& plan, const Trial& trial, const RunSummary& run) {
  const auto left = run.seconds_left();
  return {.name = concat(plan.variants[trial.variant].label, ", fold ", trial.fold,
                         plan.seeds.size() > 1 ? concat(", seed ", trial.seed) : ""),
          .address = run_address(folder.relative(trial.folder)),
          .note = run.problem,
          .state = run.state,
          .share = run.share(),
          .progress = concat("step ", run.step, " of ", run.max_steps),
          .loss = loss_text(run.best_loss),
          .loss_note = {},
          .left = left ? spoken_time(*left) : "",
          .changed = run.changed};
}

// Trials that run are shown at once, all others on demand.
Section trial_section(const ServedFolder& folder, const Plan& plan, const std::vector<RunSummary>& trials) {
  std::vector<Entry> running, all;
  for (size_t i = 0; i < trials.size(); ++i) {
    all.push_back(entry_of(folder, plan, plan.trials[i], trials[i]));
    if (trials[i].state == RunState::running) running.push_back(all.back());
  }
  Section section{"Trials", "", {}};
  if (!running.empty()) section.blocks.push_back(entry_table(running, "running"));
  section.blocks.push_back(collapsed(concat("All ", plural(all.size(), "trial")), entry_table(all, "trial")));
  return section;
}

Page report_of(const ServedFolder& folder, const Plan& plan) {
  for (const Trial& trial : plan.trials)
    if (!files_are_inside(folder, trial.folder))
      throw DataError(folder.relative(trial.folder),
                      "a link leads out of the folder, so that this study is not shown.");
  StudyResults results = load_results(plan);
  thin_curves(results, most_evaluations);
  const double target = plan.spec.study.target_loss;
  return report_page(results, analyse(results, {.target = target > 0 ? std::optional(target) : std::nullopt}));
}

Html progress_of(const ServedFolder& folder, const Plan& plan, const StudySummary& summary) {
  std::vector<Html> said = {state_mark(summary.state), plain(summary.progress_text())};
  if (summary.seconds_left) said.push_back(plain(concat("about ", spoken_time(*summary.seconds_left), " left")));
  if (summary.changed > 0) said.push_back({concat("last row ", time_mark(summary.changed).text)});
  if (is_study(plan.folder / "tuning") && folder.holds(plan.folder / "tuning"))
    said.push_back(anchor("tuning", study_address(folder.relative(plan.folder / "tuning"))));
  return progress_block(summary.state, summary.share, said);
}

}  // namespace

void thin_curves(StudyResults& results, size_t most) {
  for (TrialResult& trial : results.trials) {
    const size_t all = trial.attention.size(), every = (all + most - 1) / most;
    if (every <= 1) continue;
    std::vector<AttentionPoint> kept;
    for (size_t i = 0; i + 1 < all; i += every) kept.push_back(trial.attention[i]);
    kept.push_back(trial.attention.back());
    trial.attention = std::move(kept);
  }
  size_t longest = 0;
  for (const TrialResult& trial : results.trials) longest = std::max(longest, trial.curve.size());
  if (longest <= most) return;
  std::set<int64_t> steps;
  for (const TrialResult& trial : results.trials)
    if (trial.curve.size() == longest)
      for (size_t i = 0; i < longest; i += (longest + most - 1) / most) steps.insert(trial.curve[i].step);
  for (TrialResult& trial : results.trials) {
    if (trial.curve.empty()) continue;
    const int64_t last = trial.curve.back().step;
    const int64_t lowest = std::min_element(trial.curve.begin(), trial.curve.end(), [](const auto& a, const auto& b) {
                             return a.loss < b.loss;
                           })->step;
    std::erase_if(trial.curve, [&](const EvalPoint& point) {
      return point.step != last && point.step != lowest && !steps.contains(point.step);
    });
  }
}

LivePage study_page(const ServedFolder& folder, const fs::path& study, Summaries summaries, const HeldLocks& locks) {
  const Plan& plan = summaries.studies.plan_of(study);
  const std::vector<RunSummary> trials = trials_of(plan, summaries.runs, locks);
  const StudySummary summary = summarise(plan, trials, locks);
  LivePage out{.page = report_of(folder, plan), .active = summary.state == RunState::running};
  out.page.live = true;
  out.page.trail = {{folder.name(), "/"}};
  out.page.progress = progress_of(folder, plan, summary);
  out.page.sections.push_back(trial_section(folder, plan, trials));
  return out;
}

}  // namespace normlab
