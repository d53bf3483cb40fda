// Training of a language model: windows of a text as batches, evaluation on what is held out.
#pragma once

#include "normlab/data/batch.h"
#include "normlab/data/corpus.h"
#include "normlab/data/text_size.h"
#include "normlab/train/training_run.h"

namespace normlab {

class Trainer : public TrainingRun {
 public:
  // Starts in an empty run, or resumes from its latest checkpoint.
  Trainer(const Config& config, Corpus corpus, RunDir run, Sharing sharing = {});

  int64_t parameter_count() const override { return count_entries(stepper_.parameters()); }

 private:
  Batch batch(int64_t index) const;
  std::vector<Batch> next_batches() const;
  Step make_step(double lr) override;
  bool evaluate_now(const StopToken& stop) override;
  NamedTensors optimizer_state() const override { return stepper_.optimizer_state(); }
  void write_checkpoint(const std::filesystem::path& path, const NamedTensors& optimizer) override;
  std::string find_culprit() override { return first_bad_tensor(stepper_, next_batches(), next_pass()); }

  Corpus corpus_;
  Split split_;
  std::vector<EvalWindow> eval_windows_;
  TextSize eval_size_;
  Stepper stepper_;
};

}  // namespace normlab
