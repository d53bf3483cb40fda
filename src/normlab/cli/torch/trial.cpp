// normlab trial: one trial of a study, for job arrays and GNU parallel.
#include <memory>

#include "normlab/base/terminal.h"
#include "normlab/base/text.h"
#include "normlab/cli/torch/verbs.h"
#include "normlab/study/run/progress.h"
#include "normlab/study/trial/run_trial.h"

namespace normlab {
namespace {

struct TrialOptions {
  std::string folder;
  int64_t number = 0;
  bool quiet = false;
};

Exit report(const std::string& name, const Trial& trial) {
  const TrialRecord record = read_trial(trial);
  if (record.status == TrialStatus::diverged)
    throw Error(name, concat("diverged: ", record.message, ". This is a result of the study; it is not tried again."),
                Exit::diverged);
  log_line(concat(name, " finished", record.val_loss ? concat(": validation loss ", fixed(*record.val_loss, 4)) : "",
                  ", run in ", trial.folder.string()));
  return Exit::done;
}

Exit run_one(const TrialOptions& options) {
  const Plan plan = load_plan(options.folder);
  require_this_version(plan);
  if (!plan.is_tuned())
    throw UsageError("trial",
                     concat("the tuning in ", options.folder, "/tuning has not ended. Run its trials first, with ",
                            own_command({"trial", options.folder + "/tuning"}), " N, or all with ",
                            own_command({"compare", "--out", options.folder}), "."));
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

  use_threads(trial.config.train.threads);
  ProgressLine progress;
  const Outcome outcome = run_trial(trial, command_line(), [&](const Progress& p) {
    if (!options.quiet) progress.update(concat(name, "  ", progress_text(p)));
  });
  progress.finish();
  if (outcome != Outcome::interrupted) return report(name, trial);
  log_line(concat(name, " stopped; resume with: ", own_command({"trial", options.folder, concat(options.number)})));
  return Exit::stopped;
}

}  // namespace

void add_trial(CLI::App& app, Exit& exit) {
  auto* verb = add_torch_verb(app, "trial");
  auto options = std::make_shared<TrialOptions>();
  verb->add_option("study", options->folder, "folder of the study")->required()->type_name("DIR");
  verb->add_option("number", options->number, "number of the trial, from 1")->required()->type_name("N");
  verb->add_flag("-q,--quiet", options->quiet, "no progress line");
  verb->footer(
      "Examples:\n"
      "  normlab compare --config recipes/lp-shakespeare.toml --out studies/lp --prepare\n"
      "  normlab trial studies/lp 12\n"
      "  seq 70 | parallel -j 8 normlab trial studies/lp\n"
      "  sbatch --array=1-70 --wrap 'normlab trial studies/lp $SLURM_ARRAY_TASK_ID'\n"
      "A finished trial is left alone; one that was stopped or killed resumes bit-exactly.");
  verb->callback([options, &exit] { exit = run_one(*options); });
}

}  // namespace normlab
