// Training: the loop of steps, evaluations and checkpoints of one run.
#pragma once

#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <optional>

#include "data/batch.h"
#include "data/corpus.h"
#include "train/checkpoint.h"
#include "train/monitor.h"
#include "train/progress.h"
#include "train/stepper.h"
#include "train/training_run.h"

namespace normlab {

class Trainer : public TrainingRun {
 public:
  // Starts anew in an empty run, or goes on from its latest checkpoint.
  Trainer(const Config& config, Corpus corpus, RunDir run);

  // Until the last step, an early stop, a signal or divergence; `show` is called after each step.
  Outcome run(const std::function<void(const Progress&)>& show) override;

  const TrainState& state() const override { return state_; }
  int64_t parameter_count() const override;
  std::string culprit() const override { return culprit_; }

 private:
  uint64_t seed() const { return static_cast<uint64_t>(config_.train.seed); }
  Batch batch(int64_t index) const;
  std::vector<Batch> next_batches() const;
  Pass next_pass() const;
  StepResult train_step();
  bool evaluate_now();
  void save();
  Outcome diverged(const nlohmann::ordered_json& values);
  void record_step(const StepResult& result, double lr, double seconds);
  bool due(int64_t every) const { return every > 0 && state_.step % every == 0; }

  Config config_;
  Corpus corpus_;
  RunDir run_;
  Split split_;
  std::vector<EvalWindow> eval_windows_;
  Stepper stepper_;
  TrainState state_;
  Monitor monitor_;
  std::string culprit_;
  std::optional<MetricsLog> metrics_;
  std::optional<EventWriter> events_;
};

}  // namespace normlab
