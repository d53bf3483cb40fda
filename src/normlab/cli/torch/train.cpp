// normlab train: one run, from a configuration to a folder.
#include <ATen/Parallel.h>

#include <ctime>
#include <filesystem>
#include <memory>

#include "normlab/base/prose.h"
#include "normlab/base/terminal.h"
#include "normlab/base/text.h"
#include "normlab/cli/signals.h"
#include "normlab/cli/torch/verbs.h"
#include "normlab/cli/torch/with_ranks.h"
#include "normlab/config/flops.h"
#include "normlab/config/load_data.h"
#include "normlab/models/device.h"
#include "normlab/study/trial/trial_speed.h"
#include "normlab/train/session.h"
#include "normlab/train/translation_trainer.h"

namespace normlab {
namespace {

namespace fs = std::filesystem;

struct TrainOptions {
  ConfigOptions config;
  std::string out;
  bool resume = false, json = false, quiet = false, shard = false;
};

std::string default_folder(const Config& config) {
  char stamp[32];
  const std::time_t now = std::time(nullptr);
  std::strftime(stamp, sizeof stamp, "%Y%m%d-%H%M%S", std::localtime(&now));
  return concat("runs/", stamp, "-", config.norm.name);
}

// The configuration asked for; a run that resumes without --config keeps its own.
LoadedConfig wanted_config(const TrainOptions& options, bool resuming) {
  std::vector<Setting> settings;
  if (resuming && options.config.files.empty())
    settings = optional_settings(read_toml(RunDir::open(options.out).config().string()));
  for (Setting& setting : options.config.settings()) settings.push_back(std::move(setting));
  require_one_run(settings, "train");
  return resolve_config(settings);
}

// Gradients that were summed over ranks, also as a line.
nlohmann::ordered_json sums_of(const RankGroup& ranks, int64_t steps, int64_t parameters) {
  if (steps == 0) return nlohmann::ordered_json::object();
  const RankGroup::Times times = ranks.times();
  const double bytes = static_cast<double>(parameters) * sizeof(float);
  const double seconds = times.sums / static_cast<double>(steps);
  const double hidden = times.sums > 0.0 ? std::max(0.0, 1.0 - times.waited_for_sums / times.sums) : 0.0;
  log_line(concat("sums over ", ranks.size(), " ranks: ", si(bytes), "B and ", fixed(1e3 * seconds, 1), " ms a step, ",
                  fixed(100.0 * hidden, 0), " % of it while gradients were computed"));
  return {{"ranks", ranks.size()}, {"gradient_bytes", bytes}, {"sum_seconds", seconds}, {"hidden_share", hidden}};
}

nlohmann::ordered_json summary(const TrainingRun& trainer, const std::string& folder, Outcome outcome,
                               const nlohmann::ordered_json& sums) {
  constexpr const char* names[] = {"finished", "stopped_early", "interrupted", "diverged"};
  const TrainState& state = trainer.state();
  nlohmann::ordered_json out = {{"run", folder},
                                {"outcome", names[static_cast<int>(outcome)]},
                                {"step", state.step},
                                {"parameters", trainer.parameter_count()},
                                {"train_seconds", state.train_seconds},
                                {"train_cpu_seconds", state.train_cpu_seconds}};
  if (state.last_eval >= 0) out["val_loss"] = state.val_loss;
  // The best step of a translator is that of its BLEU, and its lowest loss may be of another.
  const bool translator = !state.bleus.empty();
  if (state.best_step >= 0) out["best_loss"] = state.best_loss;
  if (state.best_step >= 0 && !translator) out["best_step"] = state.best_step;
  if (translator)
    out["val_bleu"] = state.bleus.back(), out["best_bleu"] = best_bleu(state), out["best_bleu_step"] = state.best_step;
  if (state.test_bleu >= 0.0) out["test_bleu"] = state.test_bleu;
  if (sums.is_object()) out.update(sums);  // of ranks only
  return out;
}

Exit report(const TrainingRun& trainer, const std::string& folder, Outcome outcome) {
  const TrainState& state = trainer.state();
  if (outcome == Outcome::diverged)
    throw Error("train",
                concat(divergence(trainer),
                       ". The last checkpoint is untouched. Try a smaller optim.lr, a longer optim.warmup_steps, or a "
                       "scheme that bounds the logits, such as norm.scheme=qknorm."),
                Exit::diverged);
  if (state.last_eval >= 0)
    log_line(concat("validation loss ", fixed(state.val_loss, 4), " nats per token at step ", state.last_eval,
                    state.bleus.empty() ? ", best " : ", lowest ", fixed(state.best_loss, 4),
                    state.bleus.empty() ? concat(" at step ", state.best_step) : ""));
  if (!state.bleus.empty())
    log_line(concat("BLEU ", fixed(state.bleus.back(), 2), ", best ", fixed(best_bleu(state), 2), " at step ",
                    state.best_step,
                    state.test_bleu >= 0.0 ? concat(", on the test text ", fixed(state.test_bleu, 2)) : ""));
  log_line(concat("run in ", folder));
  if (outcome == Outcome::interrupted) {
    log_line(concat("stopped at step ", state.step, "; resume with: ", own_command({"train", folder, "--resume"})));
    return Exit::stopped;
  }
  log_line(concat("next: ", state.bleus.empty() ? own_command({"generate", folder})
                                                : own_command({"translate", folder}) + " < FILE"));
  return Exit::done;
}

// How long the run will take, when that is long: from a few steps on this machine, before the first evaluation.
void say_how_long(const Config& config, bool own_recipe) {
  constexpr double long_run = 600.0, slowest_core = 1e10;  // seconds; operations/s
  const bool translator = config.translation.wanted();
  const int vocab_size = translator ? static_cast<int>(config.translation.bpe_operations) : 256;  // about
  const int64_t held_out = translator ? 0 : guess_held_out(config);
  const double flops = flops_of_run(config, vocab_size, held_out);
  if (flops < long_run * slowest_core) return;
  Config measured = config;
  measured.train.threads = at::get_num_threads();
  const double seconds = flops / trial_speed(measured, vocab_size, /*jobs=*/1).flops_per_second;
  if (seconds < long_run) return;
  const char* small = translator ? "recipes/gl-en-small.toml" : "recipes/shakespeare-cpu.toml";
  log_line(concat("about ", spoken_time(seconds), " for ", config.train.max_steps, " steps on this machine",
                  own_recipe ? "" : concat("; a smaller model takes minutes: -c ", small)));
}

// What rank 0 decides, for all ranks: the folder of a run may be named after the time.
std::string decided_by_first(RankGroup* ranks, const std::string& value) {
  return ranks ? ranks->gather(value).front() : value;
}

Exit train_as(TrainOptions options, RankGroup* ranks) {
  const bool speaks = !ranks || ranks->rank() == 0;
  options.quiet = options.quiet || !speaks;
  const bool there = fs::exists(fs::path(options.out) / "config.toml");
  const bool resuming = options.resume && decided_by_first(ranks, there ? "resume" : "start") == "resume";
  if (options.resume && options.out.empty())
    throw UsageError("--resume", "no run given. Name its folder: `normlab train RUN --resume`.");
  const LoadedConfig loaded = wanted_config(options, resuming);
  const Config& config = loaded.config;
  if (options.out.empty()) options.out = decided_by_first(ranks, default_folder(config));
  find_device(config.train.device);  // before a text is read
  use_threads(training_threads(config));

  ProgressLine progress;
  const auto show = [&](const std::string& phase) {  // what takes a while before the first step
    if (options.quiet) return;
    progress.redraws() ? progress.update(phase) : log_line(phase);
  };
  if (!resuming && !config.data.source.empty()) show(concat("reading ", config.data.source));
  const auto trainer = open_session({.config = config,
                                     .folder = options.out,
                                     .resuming = resuming,
                                     .command = command_line(),
                                     .sharing = {ranks, options.shard},
                                     .stop = stop_requested});
  if (speaks) {
    for (const std::string& note : loaded.notes) log_line(note);
    if (const std::string reason = why_not_fused(config); !reason.empty())
      log_line(concat("composite kernels: the fused ones do not support this model, ", reason));
    log_line(concat(scheme_label(config.norm), ": ", si(static_cast<double>(trainer->parameter_count())),
                    " parameters, ", resuming ? concat("resuming from step ", trainer->state().step) : "starting",
                    ranks ? concat(" on ", ranks->size(), " ranks") : "", ", run in ", options.out));
  }
  if (!options.quiet && !resuming) say_how_long(config, !options.config.files.empty());
  if (trainer->state().last_eval < 0) show(concat("step 0/", config.train.max_steps, "  first evaluation"));
  const auto after_step = [&](const Progress& p) {
    if (!options.quiet) progress.update(progress_text(p));
  };
  const int64_t first_step = trainer->state().step;
  const Outcome outcome =
      trainer->run({.show = after_step, .stop = stop_requested, .take_save_request = take_save_request});
  progress.finish();
  if (ranks) wait_for_all(*ranks);
  if (!speaks)
    return outcome == Outcome::interrupted ? Exit::stopped : outcome == Outcome::diverged ? Exit::diverged : Exit::done;
  nlohmann::ordered_json sums = nlohmann::ordered_json::object();
  if (ranks) sums = sums_of(*ranks, trainer->state().step - first_step, trainer->parameter_count());
  if (options.json) print_json(summary(*trainer, options.out, outcome, sums));
  return report(*trainer, options.out, outcome);
}

Exit train(const TrainOptions& options) {
  return with_ranks([&](RankGroup* ranks) {
    if (!ranks && options.shard)
      throw UsageError("--shard", "this is one process, which has all of the optimiser. Start several with mpirun.");
    return train_as(options, ranks);
  });
}

}  // namespace

void add_train(CLI::App& app, Exit& exit) {
  auto* verb = add_torch_verb(app, "train");
  auto options = std::make_shared<TrainOptions>();
  options->config.add_to(*verb);
  verb->add_option("run,-o,--out", options->out, "folder of the run; default runs/<time>-<scheme>")->type_name("DIR");
  verb->add_flag("--resume", options->resume, "resume the run bit-exactly from its latest checkpoint");
  verb->add_flag("--shard", options->shard, "under mpirun: each rank has a part of the optimiser's state");
  verb->add_flag("--json", options->json, "print a summary as JSON on standard output");
  verb->add_flag("-q,--quiet", options->quiet, "no progress line");
  verb->footer(
      "Examples:\n"
      "  normlab train --config recipes/shakespeare-cpu.toml --out runs/plain\n"
      "  normlab train -c recipes/shakespeare-cpu.toml --set norm.scheme=lp norm.p=2.5 data.fold=3 --out runs/lp\n"
      "  normlab train runs/lp --resume\n"
      "--set probe.every=50 measures attention, gradients and updates during training; `normlab config explain "
      "metrics` defines them.\n"
      "mpirun -n 4 normlab train ... trains one model on four processes, which may be on other machines "
      "(docs/clusters.md).\n"
      "Ctrl-C saves and exits with 75; a second Ctrl-C ends immediately. SIGUSR2 saves and continues.");
  verb->callback([options, &exit] { exit = train(*options); });
}

}  // namespace normlab
