// normlab compare: a study, from its file to finished trials.
#include "normlab/cli/compare.h"

#include <filesystem>
#include <memory>

#include "normlab/base/terminal.h"
#include "normlab/base/text.h"
#include "normlab/cli/compare_budget.h"
#include "normlab/cli/compare_ranks.h"
#include "normlab/cli/signals.h"
#include "normlab/cli/torch_verbs.h"
#include "normlab/kernels/isa.h"
#include "normlab/record/manifest.h"
#include "normlab/study/run/cost.h"
#include "normlab/study/run/runner.h"
#include "normlab/study/run/study_folder.h"
#include "normlab/study/run/tuning.h"

namespace normlab {
namespace {

namespace fs = std::filesystem;

// What the user asks for; without --config it is what the folder holds.
StudySpec wanted_study(const CompareOptions& options) {
  if (!options.schemes.empty() && options.budget.empty())
    throw UsageError("--schemes", "goes with --budget. In a study of your own, write norm.scheme=[none,qknorm].");
  if (!options.budget.empty() && !is_study(options.out)) {
    StudySpec spec = study_of_budget(
        {.config = options.config, .time = options.budget, .schemes = options.schemes, .jobs = options.jobs});
    spec.version = NORMLAB_VERSION;
    return spec;
  }
  std::vector<Setting> settings;
  const bool resuming = options.config.files.empty() && is_study(options.out);
  if (resuming) settings = optional_settings(read_toml((fs::path(options.out) / "study.toml").string()));
  for (Setting& setting : options.config.settings()) settings.push_back(std::move(setting));
  for (Setting& setting : settings)  // `normlab trial` may be called from elsewhere
    if (setting.key == "data.source" && !setting.is_list && fs::exists(setting.values.front()))
      setting.values = {fs::absolute(setting.values.front()).lexically_normal().string()};
  StudySpec spec = read_study(settings);
  spec.version = NORMLAB_VERSION;
  return spec;
}

void say_end(const Plan& plan, const Trial& trial, const TrialRecord& record, bool also_finished) {
  const std::string name = name_of(plan, trial);
  if (record.status == TrialStatus::crashed)
    log_line(concat(name, " crashed: ", record.message, "; its log is ", trial.folder.string(), ".log"));
  else if (record.status == TrialStatus::diverged)
    log_line(concat(name, " diverged: ", record.message));
  else if (record.status == TrialStatus::damaged)
    log_line(concat(name, " is damaged: ", record.message, "; delete ", trial.folder.string(), " to run it again"));
  else if (also_finished && record.val_loss)
    log_line(concat(name, " finished: validation loss ", fixed(*record.val_loss, 4), ", ",
                    clock_time(record.train_seconds)));
}

void run_queue(const Plan& plan, StudyProgress& progress, const std::vector<const Trial*>& queue,
               const CompareOptions& options) {
  if (options.ranks) return run_on_ranks(plan, progress, queue, options);
  ProgressLine shown;
  RunnerEvents events;
  events.ended = [&](const Trial& trial, TrialEnd end) {
    progress.update(trial);
    if (end == TrialEnd::in_use)
      log_line(concat(name_of(plan, trial), " is being run by another process and is left to it"));
    else if (end == TrialEnd::stopped && !stop_requested())
      log_line(concat(name_of(plan, trial), " was stopped by a signal twice; it is left as it is"));
    else if (end == TrialEnd::recorded)
      say_end(plan, trial, progress.record(trial), !shown.redraws() && !options.quiet);
  };
  events.retried = [&](const Trial& trial, const std::string& how) {
    log_line(concat(name_of(plan, trial), " was ", how, "; it is tried once more"));
  };
  auto next_look = StudyProgress::Clock::now();
  events.tick = [&](const std::vector<const Trial*>& running) {
    const auto now = StudyProgress::Clock::now();
    if (options.quiet || now < next_look) return;
    next_look = now + std::chrono::milliseconds(100);
    for (const Trial* trial : running) progress.update(*trial);
    shown.update(shown.redraws() ? progress.table(running, terminal_height() - 1, now) : progress.line(now), now);
  };
  run_trials(plan, queue,
             {.program = options.program, .jobs = options.jobs, .nice = options.nice, .stop = stop_requested}, events);
  if (!options.quiet) shown.update(progress.line(StudyProgress::Clock::now()));
}

Exit conclude(const Plan& plan, const StudyProgress& progress, const CompareOptions& options) {
  const size_t ended = progress.count(TrialStatus::finished) + progress.count(TrialStatus::diverged);
  const size_t failed = progress.count(TrialStatus::crashed) + progress.count(TrialStatus::damaged);
  log_line(concat(ended, " of ", plan.trials.size(), " trials have ended",
                  progress.count(TrialStatus::diverged) > 0 ? concat(", ", progress.count(TrialStatus::diverged),
                                                                     " of them diverged, which is a result and stays")
                                                            : "",
                  "; study in ", plan.folder.string()));
  const std::string again = own_command({"compare", "--out", options.out});
  const bool stopped = stop_requested() || ended + failed < plan.trials.size();
  // A tuning that succeeds is followed by the study itself.
  if (options.json && (stopped || failed > 0 || plan.folder == options.out)) print_json(summary_of(plan, progress));
  if (stopped) {
    log_line(concat("stopped; resume with: ", again));
    return Exit::stopped;
  }
  if (failed > 0)
    throw Error("compare",
                concat(failed, " trials crashed or are damaged; the others are done. Once the cause is gone, ",
                       "run them with: ", again));
  return Exit::done;
}

// What is left to do of a study whose folder is taken.
Exit run_study(const Plan& plan, const StudyText& text, const CompareOptions& options) {
  for (const std::string& note : plan.notes) log_line(note);
  const std::vector<double> flops = flops_of(plan, text);
  StudyProgress progress(plan, flops);
  const std::vector<const Trial*> queue = queue_of(plan, progress, flops);
  if (options.prepare) {
    log_line(concat(size_of(plan), ", ", queue.size(), " to do; run them with: ", own_command({"trial", plan.folder}),
                    " N"));
    return Exit::done;
  }
  for (const Trial& trial : plan.trials)
    if (progress.record(trial).status == TrialStatus::damaged) say_end(plan, trial, progress.record(trial), false);
  if (!queue.empty()) {
    add_session(plan.folder / "manifest.json", {.command = command_line(),
                                                .kernels = std::string(isa_name()),
                                                .threads = plan.trials.front().config.train.threads});
    if (!plan.spec.ladder.empty()) log_line(plain_text(size_table(plan, text.vocab_size)));
    log_line(concat(size_of(plan), ", ", queue.size(), " to do, ", options.jobs, " in parallel",
                    options.ranks ? ", one per rank" : "", ", in ", plan.folder.string()));
    run_queue(plan, progress, queue, options);
  }
  return conclude(plan, progress, options);
}

// Runs the tuning trials until every variant has its value; `plan` is then the one with these values.
Exit run_tuning(Plan& plan, const StudyText& text, const CompareOptions& options) {
  while (!plan.is_tuned()) {
    const Plan tuning = tuning_plan(plan);
    const FolderLock lock = take_study_folder(tuning, text.sha256);
    log_line(concat("tuning ", plan.spec.tune.key, " of every variant"));
    if (const Exit exit = run_study(tuning, text, options); exit != Exit::done) return exit;
    if (options.prepare) {
      log_line(
          concat("then prepare the study itself with: ", own_command({"compare", "--prepare", "--out", options.out})));
      return Exit::stopped;
    }
    plan = make_plan(plan.spec, plan.folder);
  }
  for (size_t v = 0; v < plan.variants.size(); ++v) {
    const TunedVariant& tuned = plan.tuned[v];
    log_line(concat(plan.variants[v].label, ": ", plan.spec.tune.key, " = ", tuned.values[*tuned.best],
                    tuned.at_edge() ? ", at the edge of its grid" : ""));
  }
  return Exit::done;
}

Exit compare_study(CompareOptions options) {
  if (!options.budget.empty() && options.out.empty())
    options.out = (fs::path("studies") / fs::path(options.config.data).stem()).string();
  if (options.out.empty() && !options.dry_run) throw UsageError("--out", "no folder given; name that of the study.");
  Plan plan = make_plan(wanted_study(options), options.out);
  if (!options.quiet) log_line(concat("reading ", plan.trials.front().config.data.source));
  const StudyText text = options.dry_run ? measured_text_of(plan) : text_of(plan, stop_requested);
  if (options.jobs == 0) options.jobs = default_jobs(plan);
  if (!options.budget.empty()) show_budget(plan, text, options.budget);
  if (options.dry_run) return dry_run(plan, text, options);

  if (!options.prepare) options.program = torch_program();  // before anything is written
  quiet_barriers();
  const FolderLock lock = take_study_folder(plan, text.sha256);
  std::optional<StudyServer> server;
  if (options.serve) server.emplace(options.out);
  if (plan.spec.tune.wanted())
    if (const Exit exit = run_tuning(plan, text, options); exit != Exit::done)
      return options.prepare ? Exit::done : exit;
  const Exit exit = run_study(plan, text, options);
  if (server && exit == Exit::done) server->show_end();
  if (exit != Exit::done || options.prepare || options.json) return exit;
  if (plan.spec.ladder.empty()) return report_study({.study = options.out});
  log_line(concat("next: ", own_command({"fit", options.out})));
  return exit;
}

// One folder is a study to resume, several are runs.
Exit compare(CompareOptions options) {
  if (options.serve && (options.dry_run || options.prepare || options.folders.size() > 1))
    throw UsageError("--serve", "shows a study that is run here. For what is there already: normlab serve FOLDER.");
  if (options.folders.size() > 1) return compare_runs(options);
  if (options.folders.size() == 1) {
    const std::string& folder = options.folders.front();
    if (!is_study(folder))
      throw UsageError("compare", concat("got one folder, ", folder, ", which is not a study; expected a study to ",
                                         "resume, or two or more runs to put beside each other."));
    if (!options.out.empty() && options.out != folder)
      throw UsageError("--out", concat("got ", options.out, " beside the study ", folder, ". Name one of them."));
    options.out = folder;
  }
  return compare_study(std::move(options));
}

}  // namespace

void add_compare(CLI::App& app, Exit& exit) {
  auto* verb = app.add_subcommand("compare", "run a study, variants x folds x seeds in parallel; or compare runs");
  auto options = std::make_shared<CompareOptions>();
  options->config.add_files_to(*verb);
  verb->add_option("folder", options->folders, "a study to resume; or two or more runs to put beside each other")
      ->type_name("STUDY|RUN");
  verb->add_option("-o,--out", options->out, "folder of the study; running it again does only what is missing")
      ->type_name("DIR");
  verb->add_option("--budget", options->budget,
                   "without --config: choose model and steps so that the study of --data takes this long")
      ->type_name("TIME");
  verb->add_option("--schemes", options->schemes,
                   "with --budget: schemes to compare, the first is the baseline; default none,qknorm,lp,rms")
      ->delimiter(',')
      ->type_name("NAME,...");
  verb->add_option("-j,--jobs", options->jobs, "trials in parallel; default: what the cores allow")
      ->check(whole_number(1, 4096))
      ->type_name("N");
  verb->add_option("--threads-per-trial", options->config.threads, "threads per trial (train.threads); default 1")
      ->type_name("N");
  verb->add_option("--nice", options->nice, "niceness of the trials; default 10")
      ->check(whole_number(0, 19))
      ->type_name("N");
  verb->add_flag("--dry-run", options->dry_run, "show the plan and the time it will take; write nothing");
  verb->add_flag("--prepare", options->prepare, "create the folder and run nothing, for `normlab trial`");
  verb->add_flag("--serve", options->serve, "show the study in the browser while it runs");
  verb->add_flag("--json", options->json, "print a summary, or the plan, as JSON");
  verb->add_flag("-q,--quiet", options->quiet, "no progress");
  verb->footer(
      "A study is a configuration in which a list means: try each of these. data.fold and train.seed may be lists "
      "too; without data.fold all folds are used. [[variant]] tables give variants that lists cannot express "
      "(docs/studies.md). Two or more runs are shown as they are: curves and settings that differ, no test.\n"
      "Examples:\n"
      "  normlab compare --data my.txt --budget 15m\n"
      "  normlab compare --config recipes/lp-shakespeare-quick.toml --out studies/quick\n"
      "  normlab compare --config recipes/lp-shakespeare-small.toml --dry-run\n"
      "  normlab compare -c recipes/shakespeare-cpu.toml --set norm.scheme=[none,qknorm] data.fold=[0,5,9] -o "
      "studies/qk\n"
      "  normlab compare studies/quick\n"
      "  normlab compare runs/plain runs/lp\n"
      "mpirun -n 8 normlab compare ... runs eight trials at a time, on one machine or many that share the folder "
      "(docs/clusters.md).\n"
      "Ctrl-C saves and exits with 75; the same command resumes. Exit code 1: some trials crashed, the others are "
      "done.");
  verb->callback([options, &exit] { exit = with_ranks(*options, compare); });
}

}  // namespace normlab
