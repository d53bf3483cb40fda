#include "train/translation_trainer.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/file.h"
#include "base/signals.h"
#include "base/terminal.h"
#include "base/text.h"
#include "models/translate.h"
#include "train/bleu_of_text.h"
#include "train/clock.h"
#include "train/schedule.h"

namespace normlab {
namespace {

using torch::Tensor;

constexpr size_t sentences_at_once = 64;  // of a search; results do not depend on it

ParallelText first_pairs(ParallelText text, int64_t most) {
  if (most > 0 && static_cast<int64_t>(text.source.size()) > most)
    text.source.resize(static_cast<size_t>(most)), text.target.resize(static_cast<size_t>(most));
  return text;
}

}  // namespace

double best_bleu(const TrainState& state) { return *std::max_element(state.bleus.begin(), state.bleus.end()); }

TranslationTrainer::TranslationTrainer(const Config& config, TranslationData data, RunDir run)
    : config_(config),
      data_(std::move(data)),
      run_(std::move(run)),
      batches_(config, data_),
      dev_(first_pairs(data_.dev, config.train.eval_windows)),
      stepper_(make_translator(config, data_.vocabulary.size(), seed()), adamw_settings(config.optim)) {
  const auto latest = run_.latest();
  if (latest) state_ = load_checkpoint(latest->path, stepper_.model(), stepper_.optimizer());
  if (latest && state_.data_sha256 != data_.sha256)
    throw DataError("--resume",
                    "the text has changed since the run was started. Go on with the text it was started with.");
  state_.data_sha256 = data_.sha256;
  if (!latest)
    log_line(str(data_.train.size(), " pairs, ", data_.vocabulary.size(), " subwords; ", data_.dropped.describe()));
  // What was written after the checkpoint will be written again, the same but for times.
  MetricsLog::retain(run_.metrics(), [&](const nlohmann::ordered_json& row) {
    const int64_t step = row["step"];
    const bool known = !row.contains("val_loss") || state_.last_eval == step;
    return latest && !row.contains("test_bleu") && (step < state_.step || (step == state_.step && known));
  });
  metrics_.emplace(run_.metrics());
  events_.emplace(run_.path());
  if (latest) events_->session_start(state_.step + 1);
}

int64_t TranslationTrainer::parameter_count() const {
  int64_t count = 0;
  for (const Tensor& parameter : stepper_.parameters()) count += parameter.numel();
  return count;
}

// One step: batches, forward, backward, clip, update, record. A loss that is not finite changes nothing.
StepResult TranslationTrainer::train_step() {
  const auto start = Clock::now();
  const double cpu_start = cpu_seconds();
  const int64_t first_pass = state_.step * config_.train.accumulate;
  std::vector<TranslationBatch> batches;
  words_ = 0;
  for (int pass = 0; pass < config_.train.accumulate; ++pass) {
    batches.push_back(batches_.at(first_pass + pass, data_));
    words_ += batches.back().words();
  }
  const double lr = learning_rate(config_.optim, state_.step) * state_.lr_factor;
  const StepResult result =
      stepper_.step(batches, {.training = true, .seed = seed(), .step = first_pass}, lr, config_.optim.clip);
  if (!result.finite) return result;

  ++state_.step;
  const double seconds = seconds_since(start);
  state_.train_seconds += seconds;
  state_.train_cpu_seconds += cpu_seconds() - cpu_start;
  if (due(config_.train.log_every)) record_step(result, lr, seconds);
  return result;
}

void TranslationTrainer::record_step(const StepResult& result, double lr, double seconds) {
  metrics_->append(state_.step, {{"loss", result.loss},
                                 {"grad_norm", result.grad_norm},
                                 {"lr", lr},
                                 {"words", words_},
                                 {"train_seconds", state_.train_seconds},
                                 {"train_cpu_seconds", state_.train_cpu_seconds},
                                 {"tokens_per_second", static_cast<double>(words_) / seconds}});
  events_->scalar("train/loss", state_.step, result.loss, wall_time());
  events_->scalar("train/grad_norm", state_.step, result.grad_norm, wall_time());
  events_->scalar("train/lr", state_.step, lr, wall_time());
}

// Nats a subword, without smoothing; nothing when a signal came first.
std::optional<double> TranslationTrainer::dev_loss() {
  const torch::NoGradGuard no_grad;
  double total = 0.0;
  int64_t words = 0;
  for (const TranslationBatch& batch : batches_.all(dev_, data_)) {
    if (stop_requested()) return std::nullopt;
    total += stepper_.model().loss_sum(batch, Pass{}).item<double>();
    words += batch.words();
  }
  return total / static_cast<double>(words);
}

// The translation is kept in the run as translations/NAME.LANGUAGE.
std::optional<double> TranslationTrainer::bleu_of(const ParallelText& text, const std::string& name) {
  const BeamOptions options{config_.translation.beam, config_.translation.length_penalty};
  const auto lines = translate_lines(stepper_.model(), data_.vocabulary, text.source, options, sentences_at_once);
  if (lines.size() != text.source.size()) return std::nullopt;
  std::vector<std::string> output;
  std::string file;
  for (const TranslatedLine& line : lines) {
    output.push_back(line.ways.empty() ? "" : line.ways.front().text);
    file += output.back() + "\n";
  }
  const std::filesystem::path folder = run_.path() / "translations";
  std::filesystem::create_directories(folder);
  write_file_atomically(folder / str(name, ".", config_.translation.target), file);
  return bleu_of_text(output, text.target, config_.translation.bleu);
}

// False when a signal came first; the evaluation is then made after the run is taken up again.
bool TranslationTrainer::evaluate_now() {
  const auto loss = dev_loss();
  if (!loss) return false;
  if (!std::isfinite(*loss)) {
    state_.last_eval = state_.step, state_.val_loss = *loss;
    metrics_->append(state_.step, {{"val_loss", *loss}, {"diverged", true}});
    return true;
  }
  const auto bleu = bleu_of(dev_, "dev");
  if (!bleu) return false;
  state_.last_eval = state_.step, state_.val_loss = *loss;
  const bool better = state_.bleus.empty() || *bleu > best_bleu(state_);
  state_.best_loss = state_.best_step < 0 ? *loss : std::min(state_.best_loss, *loss);
  state_.evals_since_best = better ? 0 : state_.evals_since_best + 1;
  if (better) state_.best_step = state_.step;
  state_.bleus.push_back(*bleu);
  const OptimConfig& optim = config_.optim;
  if (optim.schedule == ScheduleKind::plateau && state_.step >= optim.warmup_steps &&
      on_plateau(state_.bleus, optim.plateau_patience))
    state_.lr_factor *= optim.plateau_decay;
  metrics_->append(state_.step, {{"val_loss", *loss},
                                 {"val_bleu", *bleu},
                                 {"train_seconds", state_.train_seconds},
                                 {"train_cpu_seconds", state_.train_cpu_seconds}});
  events_->scalar("val/loss", state_.step, *loss, wall_time());
  events_->scalar("val/bleu", state_.step, *bleu, wall_time());
  events_->flush();
  return true;
}

// By the best checkpoint; false when a signal came first.
bool TranslationTrainer::translate_test() {
  if (data_.test.source.empty()) return true;
  const auto latest = run_.latest(), best = run_.best();
  if (best) load_weights(best->path, stepper_.model());
  const auto bleu = bleu_of(data_.test, "test");
  if (latest) load_weights(latest->path, stepper_.model());
  if (!bleu) return false;
  state_.test_bleu = *bleu;
  metrics_->append(state_.step, {{"test_bleu", *bleu}, {"best_step", state_.best_step}});
  events_->scalar("test/bleu", state_.step, *bleu, wall_time());
  return true;
}

void TranslationTrainer::save() {
  const auto latest = run_.latest();
  if (latest && latest->step == state_.step)
    update_state(latest->path, state_);  // saved before its evaluation; the weights are the same
  else
    save_checkpoint(run_.checkpoint(state_.step), stepper_.model(), stepper_.optimizer(), state_, data_.vocabulary,
                    config_);
  run_.set_latest(state_.step);
  if (state_.best_step == state_.step) run_.set_best(state_.step);
  run_.apply_retention(static_cast<size_t>(config_.train.keep_last), static_cast<size_t>(config_.train.keep_best));
}

bool TranslationTrainer::decayed_to_the_end() const {
  return config_.optim.schedule == ScheduleKind::plateau && state_.lr_factor < 1.0 &&
         config_.optim.lr * state_.lr_factor < config_.optim.min_lr;
}

Outcome TranslationTrainer::run(const std::function<void(const Progress&)>& show) {
  const int64_t first_step = state_.step, max_steps = config_.train.max_steps;
  const auto start = Clock::now();
  int64_t words = 0;
  while (true) {
    const bool last = state_.step >= max_steps;
    // Not before the first step: a search with random weights is slow and says nothing.
    const bool wanted = last || (state_.step > 0 && due(config_.train.eval_every));
    const bool evaluating = wanted && state_.last_eval < state_.step;
    const bool evaluated = evaluating && evaluate_now();
    if (evaluated && !std::isfinite(state_.val_loss)) return Outcome::diverged;
    const bool enough =
        (config_.train.early_stop > 0 && state_.evals_since_best >= config_.train.early_stop) || decayed_to_the_end();
    const bool stopping = stop_requested(), at_end = enough || (last && state_.last_eval == state_.step);
    if (stopping || last || enough || take_save_request() || due(config_.train.save_every) ||
        (evaluated && config_.train.save_every == 0))
      save();
    if (at_end && translate_test()) {
      save();
      return enough ? Outcome::stopped_early : Outcome::finished;
    }
    if (stopping || stop_requested()) {
      save();
      return Outcome::interrupted;
    }

    const StepResult result = train_step();
    if (!result.finite) {
      metrics_->append(state_.step + 1, {{"loss", result.loss}, {"grad_norm", result.grad_norm}, {"diverged", true}});
      return Outcome::diverged;
    }
    words += words_;
    const double seconds = seconds_since(start), per_step = seconds / static_cast<double>(state_.step - first_step);
    show({.step = state_.step,
          .max_steps = max_steps,
          .loss = result.loss,
          .val_loss = state_.last_eval >= 0 ? std::optional(state_.val_loss) : std::nullopt,
          .tokens_per_second = static_cast<double>(words) / seconds,
          .seconds_left = per_step * static_cast<double>(max_steps - state_.step)});
  }
}

}  // namespace normlab
