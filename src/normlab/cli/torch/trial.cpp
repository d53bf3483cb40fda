// normlab trial: one trial of a study, or the next that nobody runs, for job arrays and GNU parallel.
#include <unistd.h>

#include <memory>
#include <set>

#include "normlab/base/terminal.h"
#include "normlab/base/text.h"
#include "normlab/cli/signals.h"
#include "normlab/cli/torch/verbs.h"
#include "normlab/study/run/claim.h"
#include "normlab/study/run/progress.h"
#include "normlab/study/trial/run_trial.h"

namespace normlab {
namespace {

struct TrialOptions {
  std::string folder;
  int64_t number = 0;
  bool next = false, all = false, quiet = false;
};

Plan plan_to_run(const TrialOptions& options) {
  Plan plan = load_plan(options.folder);
  require_this_version(plan);
  if (!plan.is_tuned())
    throw UsageError("trial",
                     concat("the tuning in ", options.folder, "/tuning has not ended. Run its trials first, with ",
                            own_command({"trial", options.folder + "/tuning"}), " --all, or all with ",
                            own_command({"compare", "--out", options.folder}), "."));
  return plan;
}

Exit report(const std::string& name, const Trial& trial) {
  const TrialRecord record = read_trial(trial);
  if (record.status == TrialStatus::diverged)
    throw Error(name, concat("diverged: ", record.message, ". This is a result of the study; it is not tried again."),
                Exit::diverged);
  log_line(concat(name, " finished", record.val_loss ? concat(": validation loss ", fixed(*record.val_loss, 4)) : "",
                  ", run in ", trial.folder.string()));
  return Exit::done;
}

Exit run_claimed(const std::string& name, const Trial& trial, const TrialOptions& options) {
  use_threads(trial.config.train.threads);
  ProgressLine progress;
  const auto show = [&](const Progress& p) {
    if (!options.quiet) progress.update(concat(name, "  ", progress_text(p)));
  };
  const Outcome outcome =
      run_trial(trial, command_line(), {.show = show, .stop = stop_requested, .take_save_request = take_save_request});
  progress.finish();
  if (outcome != Outcome::interrupted) return report(name, trial);
  const std::string which = options.all ? "--all" : options.next ? "--next" : concat(trial.number);
  log_line(concat(name, " stopped; resume with: ", own_command({"trial", options.folder, which})));
  return Exit::stopped;
}

// The trial is another process's now. Saving would spoil what that one writes.
void leave_at_once() {
  log_line("another process has taken this trial over, because this one had been silent for a minute; ending");
  ::_exit(static_cast<int>(Exit::stopped));
}

Exit run_one(const TrialOptions& options) {
  const Plan plan = plan_to_run(options);
  const auto last = static_cast<int64_t>(plan.trials.size());
  if (options.number < 1 || options.number > last)
    throw UsageError("trial", concat("got number ", options.number, ", expected 1 to ", last, ", as ", options.folder,
                                     " has fewer trials."));
  const Trial& trial = plan.trials[static_cast<size_t>(options.number - 1)];
  const std::string name = name_of(plan, trial);
  const TrialRecord before = read_trial(trial);
  if (before.status == TrialStatus::damaged)
    throw DataError(trial.folder.string(), concat(before.message, ". Delete the folder to have the trial run anew."));
  if (before.ended()) return report(name, trial);
  const auto claim = claim_trial(trial, {.stop = stop_requested, .lost = leave_at_once});
  return run_claimed(name, trial, options);
}

// What the study looks like when this process finds nothing to do.
Exit conclude(const Plan& plan, const TrialOptions& options) {
  size_t ended = 0, failed = 0;
  for (const Trial& trial : plan.trials) {
    const TrialRecord record = read_trial(trial);
    ended += record.ended();
    failed += record.status == TrialStatus::crashed || record.status == TrialStatus::damaged;
  }
  const size_t elsewhere = plan.trials.size() - ended - failed;
  log_line(concat("no free trial: ", ended, " of ", plan.trials.size(), " have ended",
                  elsewhere > 0 ? concat(", ", elsewhere, " run elsewhere") : "",
                  failed > 0 ? concat(", ", failed, " crashed or are damaged") : ""));
  if (failed == 0) return Exit::done;
  throw Error("trial", concat(failed,
                              " trials crashed or are damaged and are left alone. Once the cause is gone, run "
                              "them with: ",
                              own_command({"compare", "--out", options.folder})));
}

// --next: one trial; --all: until none is left. A trial that fails or diverges does not end the work on the others.
Exit run_free_trials(const TrialOptions& options) {
  const Plan plan = plan_to_run(options);
  std::set<const Trial*> failed;  // not tried again by this process
  NextOptions search{.wait = options.all, .stop = stop_requested, .lost = leave_at_once};
  search.skip = [&](const Trial& trial) { return failed.contains(&trial); };
  while (true) {
    const NextTrial next = next_trial(plan, search);
    if (!next.trial) return stop_requested() ? Exit::stopped : conclude(plan, options);
    try {
      const Exit exit = run_claimed(name_of(plan, *next.trial), *next.trial, options);
      if (!options.all || exit == Exit::stopped) return exit;
    } catch (const Error& error) {
      if (!options.all) throw;
      log_line(error.what());
      failed.insert(next.trial);
    }
  }
}

Exit run_trials_of(const TrialOptions& options) {
  const int ways = (options.number != 0) + options.next + options.all;
  if (ways != 1)
    throw UsageError("trial", concat("expected one of N, --next and --all, got ", ways == 0 ? "none" : "several", "."));
  return options.number != 0 ? run_one(options) : run_free_trials(options);
}

}  // namespace

void add_trial(CLI::App& app, Exit& exit) {
  auto* verb = add_torch_verb(app, "trial");
  auto options = std::make_shared<TrialOptions>();
  verb->add_option("study", options->folder, "folder of the study")->required()->type_name("DIR");
  verb->add_option("number", options->number, "number of the trial, from 1")
      ->check(whole_number(1, 1'000'000))
      ->type_name("N");
  verb->add_flag("--next", options->next, "the longest trial that is left and that no other process runs");
  verb->add_flag("--all", options->all, "one after the other until none is left; takes over from dead processes");
  verb->add_flag("-q,--quiet", options->quiet, "no progress line");
  verb->footer(
      "Examples:\n"
      "  normlab compare --config recipes/lp-shakespeare.toml --out studies/lp --prepare\n"
      "  normlab trial studies/lp 12\n"
      "  normlab trial studies/lp --all        # in every terminal, on every machine\n"
      "  sbatch --array=1-70 --wrap 'normlab trial studies/lp --next'\n"
      "Processes that share the folder never run a trial twice (docs/clusters.md). A finished trial is left alone; one "
      "that was stopped or killed resumes bit-exactly. `normlab plan DIR --slurm` writes the job script.");
  verb->callback([options, &exit] { exit = run_trials_of(*options); });
}

}  // namespace normlab
