#include "train/trainer.h"

#include <cmath>
#include <nlohmann/json.hpp>
#include <numbers>

#include "base/error.h"
#include "base/signals.h"
#include "base/terminal.h"
#include "base/text.h"
#include "train/clock.h"
#include "train/evaluate.h"
#include "train/schedule.h"

namespace normlab {
using torch::Tensor;

Trainer::Trainer(const Config& config, Corpus corpus, RunDir run)
    : config_(config),
      corpus_(std::move(corpus)),
      run_(std::move(run)),
      split_(make_split(static_cast<int64_t>(corpus_.tokens.size()), config.data.folds, config.data.fold)),
      stepper_(DecoderLm(config.model, config.norm, corpus_.tokenizer.vocab_size(), seed()),
               adamw_settings(config.optim)),
      monitor_(config) {
  eval_windows_ = eval_windows(split_.held_out, config.model.seq_len, config.train.eval_windows);
  const auto latest = run_.latest();
  if (latest) state_ = load_checkpoint(latest->path, stepper_.model(), stepper_.optimizer());
  if (latest && state_.data_sha256 != corpus_.sha256)
    throw DataError("--resume",
                    "the text has changed since the run was started. Go on with the text it was started with.");
  state_.data_sha256 = corpus_.sha256;
  // What was written after the checkpoint will be written again, the same but for times: also the evaluation at its
  // step, unless the checkpoint knows of it.
  MetricsLog::retain(run_.metrics(), [&](const nlohmann::ordered_json& row) {
    const int64_t step = row["step"];
    const bool known = !row.contains("val_loss") || state_.last_eval == step;
    return latest && (step < state_.step || (step == state_.step && known));
  });
  metrics_.emplace(run_.metrics());
  events_.emplace(run_.path());
  if (latest) events_->session_start(state_.step + 1);
}

int64_t Trainer::parameter_count() const {
  int64_t count = 0;
  for (const Tensor& parameter : stepper_.parameters()) count += parameter.numel();
  return count;
}

// Pass number `index` of the run: every pass has its own windows and its own dropout.
Batch Trainer::batch(int64_t index) const {
  const int b = config_.train.batch_size, t = config_.model.seq_len;
  const Tensor inputs = torch::empty({b, t}, torch::kInt64), targets = torch::empty_like(inputs);
  const auto size = static_cast<size_t>(b) * static_cast<size_t>(t);
  fill_batch({seed(), config_.data.fold, b, t}, corpus_.tokens, split_, index, {inputs.data_ptr<int64_t>(), size},
             {targets.data_ptr<int64_t>(), size});
  return {inputs, targets};
}

std::vector<Batch> Trainer::next_batches() const {
  std::vector<Batch> batches;
  for (int pass = 0; pass < config_.train.accumulate; ++pass)
    batches.push_back(batch(state_.step * config_.train.accumulate + pass));
  return batches;
}

Pass Trainer::next_pass() const {
  return {.training = true, .seed = seed(), .step = state_.step * config_.train.accumulate};
}

// One step: batches, forward, backward, clip, update, record. A loss that is not finite changes nothing.
StepResult Trainer::train_step() {
  const auto start = Clock::now();
  const double cpu_start = cpu_seconds();
  const double lr = learning_rate(config_.optim, state_.step);
  Pass pass = next_pass();
  pass.observer = monitor_.before_step(stepper_.model(), state_.step + 1);
  const StepResult result = stepper_.step(next_batches(), pass, lr, config_.optim.clip);
  if (!result.finite) return result;

  ++state_.step;
  const double seconds = seconds_since(start);
  state_.train_seconds += seconds;
  state_.train_cpu_seconds += cpu_seconds() - cpu_start;
  if (due(config_.train.log_every)) record_step(result, lr, seconds);
  monitor_.after_step(state_.step, result, *metrics_, *events_);
  return result;
}

void Trainer::record_step(const StepResult& result, double lr, double seconds) {
  const double tokens =
      static_cast<double>(config_.train.batch_size) * config_.model.seq_len * config_.train.accumulate;
  metrics_->append(state_.step, {{"loss", result.loss},
                                 {"grad_norm", result.grad_norm},
                                 {"lr", lr},
                                 {"tokens", tokens * static_cast<double>(state_.step)},
                                 {"train_seconds", state_.train_seconds},
                                 {"train_cpu_seconds", state_.train_cpu_seconds},
                                 {"tokens_per_second", tokens / seconds}});
  events_->scalar("train/loss", state_.step, result.loss, wall_time());
  events_->scalar("train/grad_norm", state_.step, result.grad_norm, wall_time());
  events_->scalar("train/lr", state_.step, lr, wall_time());
}

// False when a signal came first; the evaluation is then made after the run is taken up again.
bool Trainer::evaluate_now() {
  const auto loss = evaluate(stepper_.model(), corpus_.tokens, eval_windows_, config_.train.batch_size);
  if (!loss) return false;
  state_.last_eval = state_.step;
  state_.val_loss = *loss;
  if (!std::isfinite(*loss)) return true;
  const bool better = state_.best_step < 0 || *loss < state_.best_loss;
  state_.evals_since_best = better ? 0 : state_.evals_since_best + 1;
  if (better) state_.best_loss = *loss, state_.best_step = state_.step;
  const double bits = *loss / std::numbers::ln2;
  metrics_->append(state_.step, {{"val_loss", *loss},
                                 {"val_bits_per_character", bits / corpus_.characters_per_token},
                                 {"val_bits_per_byte", bits / corpus_.bytes_per_token},
                                 {"train_seconds", state_.train_seconds},
                                 {"train_cpu_seconds", state_.train_cpu_seconds}});
  events_->scalar("val/loss", state_.step, *loss, wall_time());
  events_->flush();
  return true;
}

void Trainer::save() {
  const auto latest = run_.latest();
  if (latest && latest->step == state_.step)
    update_state(latest->path, state_);  // saved before its evaluation; the weights are the same
  else
    save_checkpoint(run_.checkpoint(state_.step), stepper_.model(), stepper_.optimizer(), state_, corpus_.tokenizer,
                    config_);
  run_.set_latest(state_.step);
  if (state_.best_step == state_.step) run_.set_best(state_.step);
  run_.apply_retention(static_cast<size_t>(config_.train.keep_last), static_cast<size_t>(config_.train.keep_best));
}

// The step that cannot be made is looked at once more, for its first bad tensor; nothing is saved.
Outcome Trainer::diverged(const nlohmann::ordered_json& values) {
  culprit_ = first_bad_tensor(stepper_, next_batches(), next_pass());
  nlohmann::ordered_json row = values;
  row["diverged"] = true;
  row["culprit"] = culprit_;
  metrics_->append(values.contains("loss") ? state_.step + 1 : state_.step, row);
  return Outcome::diverged;
}

Outcome Trainer::run(const std::function<void(const Progress&)>& show) {
  const int64_t first_step = state_.step, max_steps = config_.train.max_steps;
  const auto start = Clock::now();
  const double tokens =
      static_cast<double>(config_.train.batch_size) * config_.model.seq_len * config_.train.accumulate;
  while (true) {
    const bool last = state_.step >= max_steps;
    const bool evaluating = (last || due(config_.train.eval_every)) && state_.last_eval < state_.step;
    const bool evaluated = evaluating && evaluate_now();
    if (evaluated && !std::isfinite(state_.val_loss)) return diverged({{"val_loss", state_.val_loss}});
    const bool enough = config_.train.early_stop > 0 && state_.evals_since_best >= config_.train.early_stop;
    const bool stopping = stop_requested();
    if (stopping || last || enough || take_save_request() || due(config_.train.save_every) ||
        (evaluated && config_.train.save_every == 0))
      save();
    if (last && state_.last_eval == state_.step) return Outcome::finished;
    if (enough) return Outcome::stopped_early;
    if (stopping) return Outcome::interrupted;

    const StepResult result = train_step();
    if (!result.finite) return diverged({{"loss", result.loss}, {"grad_norm", result.grad_norm}});
    const double per_step = seconds_since(start) / static_cast<double>(state_.step - first_step);
    show({.step = state_.step,
          .max_steps = max_steps,
          .loss = result.loss,
          .val_loss = state_.last_eval >= 0 ? std::optional(state_.val_loss) : std::nullopt,
          .tokens_per_second = tokens / per_step,
          .seconds_left = per_step * static_cast<double>(max_steps - state_.step)});
  }
}

}  // namespace normlab
