#include "normlab/train/training_run.h"

#include <cmath>
#include <utility>

#include "normlab/base/error.h"
#include "normlab/base/memory.h"
#include "normlab/base/terminal.h"
#include "normlab/base/text.h"
#include "normlab/train/clock.h"
#include "normlab/train/schedule.h"

namespace normlab {

void TrainingRun::begin(const std::string& data_sha256,
                        const std::function<TrainState(const std::filesystem::path& checkpoint)>& load) {
  const auto latest = run_.latest();
  is_new_ = !latest;
  if (latest) state_ = load(latest->path);
  if (latest && state_.data_sha256 != data_sha256)
    throw DataError("--resume",
                    "the text has changed since the run was started. Resume with the text it was started with.");
  state_.data_sha256 = data_sha256;
  state_.test_bleu = -1.0;  // measured again at the end, and so is its row
  if (ranks_) require_same_text(*ranks_, data_sha256);
  if (!writes()) return;
  monitor_.restore(state_.watchdog);
  // What was written after the checkpoint will be written again, the same but for times.
  MetricsLog::retain(run_.metrics(),
                     [&](const nlohmann::ordered_json& row) { return latest && knows_row(state_, row); });
  metrics_.emplace(run_.metrics());
  events_.emplace(run_.path());
  if (latest) events_->session_start(state_.step + 1);
}

// One step: batches, forward, backward, clip, update, record. A loss that is not finite changes nothing.
TrainingRun::Step TrainingRun::train_step() {
  const auto start = Clock::now();
  const double cpu_start = cpu_seconds();
  const double lr = learning_rate(config_.optim, state_.step) * state_.lr_factor;
  Step step = with_memory_for(concat("a training step (train.batch_size = ", config_.train.batch_size, ")"),
                              [&] { return make_step(lr); });
  if (!step.result.finite) return step;

  ++state_.step;
  const double seconds = seconds_since(start);
  state_.train_seconds += seconds;
  state_.train_cpu_seconds += cpu_seconds() - cpu_start;
  if (!writes()) return step;
  if (due(config_.train.log_every)) record_step(step, lr, seconds);
  monitor_.after_step(state_.step, step.result, *metrics_, *events_);
  return step;
}

void TrainingRun::record_step(const Step& step, double lr, double seconds) {
  nlohmann::ordered_json row = {{"loss", step.result.loss}, {"grad_norm", step.result.grad_norm}, {"lr", lr}};
  row.update(step.counts);
  row["train_seconds"] = state_.train_seconds;
  row["train_cpu_seconds"] = state_.train_cpu_seconds;
  row["tokens_per_second"] = step.tokens / seconds;
  metrics_->append(state_.step, row);
  events_->scalar("train/loss", state_.step, step.result.loss, wall_time());
  events_->scalar("train/grad_norm", state_.step, step.result.grad_norm, wall_time());
  events_->scalar("train/lr", state_.step, lr, wall_time());
}

void TrainingRun::record_evaluation(const nlohmann::ordered_json& values) {
  if (!writes()) return;
  nlohmann::ordered_json row = values;
  row["train_seconds"] = state_.train_seconds;
  row["train_cpu_seconds"] = state_.train_cpu_seconds;
  metrics_->append(state_.step, row);
  for (const char* name : {"loss", "bleu"})
    if (const auto value = values.find(concat("val_", name)); value != values.end())
      events_->scalar(concat("val/", name), state_.step, *value, wall_time());
  events_->flush();
}

void TrainingRun::save() {
  const NamedTensors optimizer = optimizer_state();
  if (!writes()) return;
  metrics_->sync();  // or a power cut could lose rows of steps that the checkpoint has behind it
  state_.metrics_rows = metrics_->rows() - (state_.test_bleu >= 0.0 ? 1 : 0);  // those that a resume keeps
  state_.watchdog = monitor_.memory();
  const auto latest = run_.latest();
  if (latest && latest->step == state_.step)
    update_state(latest->path, state_);  // saved before its evaluation; the weights are the same
  else
    write_checkpoint(run_.checkpoint(state_.step), optimizer);
  run_.set_latest(state_.step);
  if (state_.best_step == state_.step) run_.set_best(state_.step);
  run_.apply_retention(static_cast<size_t>(config_.train.keep_last), static_cast<size_t>(config_.train.keep_best));
}

bool TrainingRun::evaluate_if_memory_allows(const StopToken& stop) {
  return with_memory_for(concat("an evaluation (train.batch_size = ", config_.train.batch_size, ")"),
                         [&] { return evaluate_now(ranks_ ? never_stop : stop); });
}

// Of any rank.
TrainingRun::Requests TrainingRun::requests(const RunControl& control) {
  const Requests own{.stop = control.stop(), .save = control.take_save_request()};
  if (!ranks_) return own;
  const std::vector<double> all = sum(*ranks_, {own.stop ? 1.0 : 0.0, own.save ? 1.0 : 0.0});
  return {.stop = all[0] > 0.0, .save = all[1] > 0.0};
}

double TrainingRun::own_clock() const {
  const double now = std::chrono::duration<double>(Clock::now().time_since_epoch()).count();
  return ranks_ ? now - ranks_->times().waited : now;
}

void TrainingRun::check_ranks(const std::vector<torch::Tensor>& parameters) {
  constexpr int64_t every = 100;  // steps
  const int64_t step = state_.step + 1;
  if (step % every != 0) return;
  require_same_weights(*ranks_, parameters, step);
  for (const std::string& line : slow_ranks(*ranks_, std::exchange(own_seconds_, 0.0)))
    if (writes()) log_line(concat(warning_label(STDERR_FILENO), line));
}

bool TrainingRun::enough() const {
  return config_.train.early_stop > 0 && state_.evals_since_best >= config_.train.early_stop;
}

// The step that cannot be made is looked at once more, for its first bad tensor; nothing is saved.
Outcome TrainingRun::diverged(const nlohmann::ordered_json& values) {
  if (!writes()) return Outcome::diverged;
  culprit_ = find_culprit();
  nlohmann::ordered_json row = values;
  row["diverged"] = true;
  row["culprit"] = culprit_;
  metrics_->append(values.contains("loss") ? state_.step + 1 : state_.step, row);
  return Outcome::diverged;
}

Outcome TrainingRun::run(const RunControl& control) {
  const int64_t first_step = state_.step, max_steps = config_.train.max_steps;
  const auto start = Clock::now();
  double tokens = 0.0;
  if (is_new_) save();  // before the first row: rows without a checkpoint tell that it was lost
  while (true) {
    const bool last = state_.step >= max_steps;
    const bool wanted = last || (due(config_.train.eval_every) && (state_.step > 0 || evaluates_untrained()));
    const bool evaluated = wanted && state_.last_eval < state_.step && evaluate_if_memory_allows(control.stop);
    if (evaluated && !std::isfinite(state_.val_loss)) return diverged({{"val_loss", state_.val_loss}});
    const auto [stopping, saving] = requests(control);
    const bool at_end = enough() || (last && state_.last_eval == state_.step);
    if (stopping || last || at_end || saving || due(config_.train.save_every) ||
        (evaluated && config_.train.save_every == 0))
      save();
    if (ranks_ && (at_end || stopping)) wait_for_all(*ranks_);  // for rank 0 to save
    if (at_end && finish(ranks_ ? never_stop : control.stop)) return last ? Outcome::finished : Outcome::stopped_early;
    if (at_end || stopping) return Outcome::interrupted;

    const Step step = train_step();
    if (!step.result.finite) return diverged({{"loss", step.result.loss}, {"grad_norm", step.result.grad_norm}});
    tokens += step.tokens;
    const double seconds = seconds_since(start), per_step = seconds / static_cast<double>(state_.step - first_step);
    control.show({.step = state_.step,
                  .max_steps = max_steps,
                  .loss = step.result.loss,
                  .val_loss = state_.last_eval >= 0 ? std::optional(state_.val_loss) : std::nullopt,
                  .tokens_per_second = tokens / seconds,
                  .seconds_left = per_step * static_cast<double>(max_steps - state_.step)});
  }
}

int64_t count_entries(const std::vector<torch::Tensor>& parameters) {
  int64_t count = 0;
  for (const torch::Tensor& parameter : parameters) count += parameter.numel();
  return count;
}

std::string divergence(const TrainingRun& run) {
  return concat("the loss is not finite after step ", run.state().step, "; first bad: ", run.culprit());
}

}  // namespace normlab
