// A training: the loop of steps, evaluations and checkpoints, whatever it trains.
#pragma once

#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "normlab/ranks/ranks.h"
#include "normlab/record/metrics.h"
#include "normlab/record/run_dir.h"
#include "normlab/record/tensorboard.h"
#include "normlab/train/checkpoint.h"
#include "normlab/train/monitor.h"
#include "normlab/train/progress.h"
#include "normlab/train/stepper.h"

namespace normlab {

// The processes that train a model together.
struct Sharing {
  RankGroup* ranks = nullptr;  // null: this process alone
  bool optimizer = false;      // each updates a part of the parameters
};

class TrainingRun {
 public:
  virtual ~TrainingRun() = default;

  // Until the last step, an early stop, a request to stop or divergence.
  Outcome run(const RunControl& control = {});

  const TrainState& state() const { return state_; }
  virtual int64_t parameter_count() const = 0;
  // Of a run that has diverged: the first tensor that was not finite, and its layer.
  const std::string& culprit() const { return culprit_; }

 protected:
  // With `ranks`, which may be null, this process is one of several that train the model together; rank 0 writes.
  TrainingRun(const Config& config, RunDir run, RankGroup* ranks)
      : config_(config), run_(std::move(run)), ranks_(ranks), monitor_(config) {}

  // Starts the records of a new run, or loads its latest checkpoint with `load`; for the constructor of a trainer.
  void begin(const std::string& data_sha256,
             const std::function<TrainState(const std::filesystem::path& checkpoint)>& load);

  struct Step {
    StepResult result;
    double tokens = 0.0;            // of its batches
    nlohmann::ordered_json counts;  // for metrics.jsonl
  };
  virtual Step make_step(double lr) = 0;  // next batches, and their watched_step
  // Into state_ and the records; false when it was stopped: it is then made after the run is resumed.
  virtual bool evaluate_now(const StopToken& stop) = 0;
  virtual bool evaluates_untrained() const { return true; }
  virtual bool enough() const;                       // an early stop
  virtual NamedTensors optimizer_state() const = 0;  // all of it, for rank 0; called by all ranks
  virtual void write_checkpoint(const std::filesystem::path& path, const NamedTensors& optimizer) = 0;
  virtual bool finish(const StopToken&) { return true; }  // what comes after the last evaluation; false when stopped
  virtual std::string find_culprit() = 0;                 // of the step that cannot be made: its first_bad_tensor

  // Forward, backward, clip and update, probed when it is due.
  template <class Model, class ModelBatch>
  StepResult watched_step(BasicStepper<Model, ModelBatch>& stepper, const std::vector<ModelBatch>& batches, double lr) {
    std::vector<int64_t> rows;
    for (const ModelBatch& batch : batches) rows.push_back(batch.rows());
    Pass pass = next_pass();
    pass.observer = monitor_.before_step(stepper.model(), state_.step + 1, rows);
    const double start = own_clock();
    const StepResult result = stepper.step(batches, pass, lr, config_.optim.clip);
    own_seconds_ += own_clock() - start;
    if (ranks_) monitor_.gather_from(*ranks_), check_ranks(stepper.parameters());
    return result;
  }
  bool writes() const { return !ranks_ || ranks_->rank() == 0; }
  // Number of the next step's first batch; every batch of the run has its own, and its own dropout.
  int64_t next_batch() const { return state_.step * config_.train.accumulate; }
  Pass next_pass() const { return {.training = true, .seed = seed(), .step = next_batch()}; }

  uint64_t seed() const { return static_cast<uint64_t>(config_.train.seed); }
  bool due(int64_t every) const { return every > 0 && state_.step % every == 0; }
  void record_evaluation(const nlohmann::ordered_json& values);
  void save();

  Config config_;
  RunDir run_;
  RankGroup* ranks_;
  TrainState state_;
  std::optional<MetricsLog> metrics_;
  std::optional<EventWriter> events_;

 private:
  Step train_step();
  bool evaluate_if_memory_allows(const StopToken& stop);
  void record_step(const Step& step, double lr, double seconds);
  struct Requests {
    bool stop, save;
  };
  Requests requests(const RunControl& control);
  double own_clock() const;  // stands still while this rank waits for others
  void check_ranks(const std::vector<torch::Tensor>& parameters);
  Outcome diverged(const nlohmann::ordered_json& values);

  Monitor monitor_;
  bool is_new_ = false;  // there was no checkpoint to begin from
  std::string culprit_;
  double own_seconds_ = 0.0;  // of steps since the last check, without waiting for other ranks
};

int64_t count_entries(const std::vector<torch::Tensor>& parameters);

// What to say of a run that has diverged.
std::string divergence(const TrainingRun& run);

}  // namespace normlab
