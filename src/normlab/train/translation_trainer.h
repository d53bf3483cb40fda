// Training of a translator: pairs as batches, evaluation by loss and BLEU, and the test text at the end.
#pragma once

#include "normlab/train/training_run.h"
#include "normlab/train/translation_batches.h"

namespace normlab {

double best_bleu(const TrainState& state);  // of a translator that was evaluated

class TranslationTrainer : public TrainingRun {
 public:
  // Starts in an empty run, or resumes from its latest checkpoint.
  TranslationTrainer(const Config& config, TranslationData data, RunDir run, Sharing sharing = {});

  int64_t parameter_count() const override { return count_entries(stepper_.parameters()); }

 private:
  std::vector<TranslationBatch> next_batches();
  Step make_step(double lr) override;
  bool evaluate_now(const StopToken& stop) override;
  // A search with random weights is slow and says nothing.
  bool evaluates_untrained() const override { return false; }
  bool enough() const override;
  bool finish(const StopToken& stop) override;
  NamedTensors optimizer_state() const override { return stepper_.optimizer_state(); }
  void write_checkpoint(const std::filesystem::path& path, const NamedTensors& optimizer) override;
  std::string find_culprit() override { return first_bad_tensor(stepper_, next_batches(), next_pass()); }
  // Nothing when stopped.
  std::optional<double> dev_loss(const StopToken& stop);
  // Of all lines; with ranks each translates some. Nothing when stopped.
  std::optional<std::vector<std::string>> translations_of(const std::vector<std::string>& lines, const StopToken& stop);
  std::optional<double> bleu_of(const ParallelText& text, const std::string& name, const StopToken& stop);

  TranslationData data_;
  TranslationBatches batches_;
  ParallelText dev_;  // what is evaluated of it
  TranslationStepper stepper_;
};

}  // namespace normlab
