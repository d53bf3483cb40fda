// normlab compare --dry-run: the plan of a study, its operations and the time they will take.
#include <algorithm>

#include "normlab/base/terminal.h"
#include "normlab/base/text.h"
#include "normlab/cli/compare.h"
#include "normlab/cli/torch_verbs.h"
#include "normlab/study/run/cost.h"

namespace normlab {
namespace {

using Json = nlohmann::ordered_json;

void print_plan(const Plan& plan, const StudyProgress& progress, const std::vector<double>& flops) {
  struct Row {
    size_t trials = 0, ended = 0;
    double flops = 0.0;
  };
  std::vector<Row> rows(plan.variants.size());
  for (const Trial& trial : plan.trials) {
    Row& row = rows[trial.variant];
    ++row.trials, row.ended += progress.record(trial).ended(), row.flops += flops[trial.number - 1];
  }
  size_t width = 0;
  for (const Variant& variant : plan.variants) width = std::max(width, variant.label.size());
  print_line(concat(size_of(plan), "; baseline '", plan.variants[plan.baseline].label, "'"));
  for (size_t v = 0; v < rows.size(); ++v) {
    const std::string& label = plan.variants[v].label;
    print_line(concat("  ", label, std::string(width - label.size(), ' '), "  ", rows[v].trials, " trials, ",
                      rows[v].ended, " done, ", si(rows[v].flops), "FLOP"));
  }
}

}  // namespace

std::string size_of(const Plan& plan) {
  const auto count = [](size_t n, const char* what) { return concat(n, " ", what, n == 1 ? "" : "s"); };
  return concat(count(plan.variants.size(), "variant"), " x ", count(plan.folds.size(), "fold"), " x ",
                count(plan.seeds.size(), "seed"), " = ", count(plan.trials.size(), "trial"));
}

Json summary_of(const Plan& plan, const StudyProgress& progress) {
  Json out = {{"study", plan.folder.string()}, {"trials", plan.trials.size()}};
  for (const TrialStatus status : {TrialStatus::finished, TrialStatus::diverged, TrialStatus::crashed,
                                   TrialStatus::damaged, TrialStatus::started, TrialStatus::missing})
    out[name_of(status)] = progress.count(status);
  return out;
}

Exit dry_run(const Plan& plan, const StudyText& text, const CompareOptions& options) {
  const std::vector<double> flops = flops_of(plan, text);
  const StudyProgress progress(plan, flops);
  const std::vector<const Trial*> queue = queue_of(plan, progress, flops);
  const TuningCost tuning = cost_of_tuning(plan, text);
  const double flops_left = progress.flops_left() + tuning.flops_left;
  const int side_by_side = std::min(options.jobs, std::max(1, static_cast<int>(queue.size())));
  const size_t longest = static_cast<size_t>(std::max_element(flops.begin(), flops.end()) - flops.begin());
  log_line(concat("measuring the speed of ", side_by_side, " in parallel"));
  const TrialSpeed speed = measure_speed(plan.trials[longest].config, text.vocab_size, side_by_side);
  const double all_together = flops_left / (speed.flops_per_second * side_by_side);
  const double longest_alone = queue.empty() ? 0.0 : flops[queue.front()->number - 1] / speed.flops_per_second;
  const double seconds = std::max(all_together, longest_alone);
  if (!options.json) {
    print_plan(plan, progress, flops);
    if (!plan.spec.ladder.empty()) print_line(plain_text(size_table(plan, text.vocab_size)));
    if (tuning.trials > 0)
      print_wrapped(concat("tuning of ", plan.spec.tune.key, " first: ", tuning.trials, " trials, ",
                           si(tuning.flops_left),
                           "FLOP to do, and one more for each variant whose best value is at an edge of the grid"));
    print_wrapped(concat("to do: ", queue.size(), " trials", tuning.trials > 0 ? " and the tuning" : "", ", ",
                         si(flops_left), "FLOP, about ", clock_time(seconds), " with ", side_by_side,
                         " in parallel (ten steps ran at ", si(speed.flops_per_second), "FLOP/s each)"));
    if (text.estimated) print_line("the text is long: its size is estimated from its beginning");
    return Exit::done;
  }
  Json out = summary_of(plan, progress);
  out["baseline"] = plan.variants[plan.baseline].label;
  if (tuning.trials > 0)
    out["tuning"] = {{"key", plan.spec.tune.key}, {"trials", tuning.trials}, {"flops_left", tuning.flops_left}};
  out["flops_left"] = flops_left;
  if (text.estimated) out["estimated"] = true;
  out["jobs"] = side_by_side;
  out["flops_per_second"] = speed.flops_per_second;
  out["seconds_left"] = seconds;
  out["plan"] = Json::array();
  for (const Trial& trial : plan.trials)
    out["plan"].push_back({{"number", trial.number},
                           {"variant", plan.variants[trial.variant].label},
                           {"fold", trial.fold},
                           {"seed", trial.seed},
                           {"folder", trial.folder.string()},
                           {"status", name_of(progress.record(trial).status)},
                           {"flops", flops[trial.number - 1]}});
  print_json(out);
  return Exit::done;
}

}  // namespace normlab
