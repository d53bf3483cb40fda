#include "normlab/study/trial/run_trial.h"

#include <cmath>

#include "normlab/base/text.h"
#include "normlab/train/session.h"

namespace normlab {
namespace {

namespace fs = std::filesystem;

// A trial that has ended goes nowhere from here: its moments, two thirds of a checkpoint, serve nobody.
void drop_moments(const fs::path& folder) {
  for (const Checkpoint& each : RunDir::open(folder).checkpoints()) fs::remove(each.path / "optimizer.safetensors");
}

TrialRecord record_of(const TrainingRun& trainer, Outcome outcome) {
  const TrainState& state = trainer.state();
  const bool diverged = outcome == Outcome::diverged;
  TrialRecord record{.status = diverged ? TrialStatus::diverged : TrialStatus::finished, .step = state.step};
  if (state.last_eval >= 0 && std::isfinite(state.val_loss)) record.val_loss = state.val_loss;
  if (state.best_step >= 0) record.best_loss = state.best_loss;
  record.parameters = trainer.parameter_count();
  record.train_seconds = state.train_seconds;
  record.train_cpu_seconds = state.train_cpu_seconds;
  record.data_sha256 = state.data_sha256;
  if (diverged) record.message = divergence(trainer);
  return record;
}

}  // namespace

Outcome run_trial(const Trial& trial, const std::vector<std::string>& command, const RunControl& control) {
  require_same_trial(trial);
  try {
    forget_crash(trial);
    const bool resuming = fs::exists(trial.folder / "config.toml");
    const auto trainer =
        open_session({.config = trial.config, .folder = trial.folder, .resuming = resuming, .command = command});
    const Outcome outcome = trainer->run(control);
    if (outcome == Outcome::interrupted) return outcome;
    write_record(trial, record_of(*trainer, outcome));
    if (outcome != Outcome::diverged) drop_moments(trial.folder);
    return outcome;
  } catch (const std::exception& error) {
    record_crash(trial, split(error.what(), '\n').front());
    throw;
  }
}

}  // namespace normlab
