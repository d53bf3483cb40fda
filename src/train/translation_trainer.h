// Training of a translator: steps, evaluations by loss and BLEU, checkpoints, and the test text at the end.
#pragma once

#include <optional>

#include "record/metrics.h"
#include "record/tensorboard.h"
#include "train/stepper.h"
#include "train/training_run.h"
#include "train/translation_batches.h"

namespace normlab {

double best_bleu(const TrainState& state);  // of a translator that was evaluated

class TranslationTrainer : public TrainingRun {
 public:
  // Starts anew in an empty run, or goes on from its latest checkpoint.
  TranslationTrainer(const Config& config, TranslationData data, RunDir run);

  Outcome run(const std::function<void(const Progress&)>& show) override;
  const TrainState& state() const override { return state_; }
  int64_t parameter_count() const override;

 private:
  uint64_t seed() const { return static_cast<uint64_t>(config_.train.seed); }
  StepResult train_step();
  bool evaluate_now();
  std::optional<double> dev_loss();
  std::optional<double> bleu_of(const ParallelText& text, const std::string& name);
  bool translate_test();
  void record_step(const StepResult& result, double lr, double seconds);
  void save();
  bool due(int64_t every) const { return every > 0 && state_.step % every == 0; }
  bool decayed_to_the_end() const;

  Config config_;
  TranslationData data_;
  RunDir run_;
  TranslationBatches batches_;
  ParallelText dev_;  // what is evaluated of it
  TranslationStepper stepper_;
  TrainState state_;
  int64_t words_ = 0;  // of the last step
  std::optional<MetricsLog> metrics_;
  std::optional<EventWriter> events_;
};

}  // namespace normlab
