// One optimiser step: forward and backward over parts of the batch, clip, update.
#pragma once

#include <memory>
#include <vector>

#include "normlab/models/decoder_lm.h"
#include "normlab/models/encoder_decoder.h"
#include "normlab/train/make_optimizer.h"
#include "normlab/train/rank_sums.h"
#include "normlab/train/shards.h"

namespace normlab {

struct StepResult {
  double loss = 0.0, grad_norm = 0.0;
  bool finite = true;  // false: nothing was changed
};

// A batch of windows, [b, t] each.
struct Batch {
  torch::Tensor inputs, targets;

  int64_t rows() const { return inputs.size(0); }
  int64_t row_tokens() const { return inputs.size(1); }
  int64_t words() const { return targets.numel(); }
  Batch slice(int64_t begin, int64_t end) const { return {inputs.slice(0, begin, end), targets.slice(0, begin, end)}; }
};

template <class Model, class ModelBatch>
class BasicStepper {
 public:
  // With fused kernels the batch is split over the threads, each running whole layers on its own sequences without a
  // barrier, a few sequences at a time so that what one operator writes is still in the cache for the next; composite
  // operators share the work of each operator instead. The optimiser uses the same kind of kernels as the model.
  // Parameters outside `only` keep their values; UsageError when that are all.
  BasicStepper(Model model, const OptimizerSettings& settings, TrainedPart only = TrainedPart::all);

  // `batches` are the passes of one step; their mean loss is minimised. `pass` belongs to the first of them, and its
  // observer sees all of them.
  StepResult step(const std::vector<ModelBatch>& batches, Pass pass, double lr, double clip);

  // Before the first step: from now on step() takes this rank's rows of every batch, and updates from the gradients of
  // all ranks. An observer sees this rank's rows, and the gradients of all. Each matrix of Muon is updated by one rank
  // alone; with `shard`, so is every other parameter.
  void share_with(RankGroup& ranks, bool shard);

  // The gradients that the ranks have, without anything else; for measurements.
  void sum_gradients() { rank_sums_->finish(gradients()); }

  // The loss and its gradients without an update; of whole batches, also with ranks.
  double differentiate(const std::vector<ModelBatch>& batches, Pass pass);

  Model& model() { return replicas_.front(); }
  Optimizer& optimizer() { return *optimizer_; }
  // For a checkpoint, which rank 0 writes; all ranks call it.
  NamedTensors optimizer_state() const { return shards_ ? shards_->whole(optimizer_->state()) : optimizer_->state(); }
  const std::vector<torch::Tensor>& parameters() const { return parameters_.front(); }

 private:
  // Which rows of a batch to differentiate, and whether its gradients are the last of the step.
  struct Share {
    int64_t begin, end;
    bool ends_step;
  };
  // On the CPU the loss; on another device it is added to device_loss_, and 0.
  double backward(const ModelBatch& batch, const Pass& pass, double weight, const Share& share);
  void add_device_loss(const torch::Tensor& loss);
  double backward_all(const std::vector<ModelBatch>& batches, Pass pass, bool shared);
  std::vector<Gradients> gradients() const;
  StepResult shared_step(const std::vector<ModelBatch>& batches, Pass pass, double lr, double clip);

  std::vector<Model> replicas_;                         // the model, then aliases of it, one per thread
  std::vector<std::vector<torch::Tensor>> parameters_;  // of each replica, the same storage
  std::vector<GradientSink> sinks_;                     // of each replica, for the parts of a batch after its first
  OptimizerSettings settings_;
  TrainedPart only_;
  std::unique_ptr<Optimizer> optimizer_;
  LogitMaxima maxima_;                   // of the step, over all replicas
  std::unique_ptr<RankSums> rank_sums_;  // null: not shared with ranks
  std::unique_ptr<Shards> shards_;       // null: nor is the optimiser
  torch::Tensor device_loss_;            // of the step so far
};

using Stepper = BasicStepper<DecoderLm, Batch>;
using TranslationStepper = BasicStepper<EncoderDecoder, TranslationBatch>;

}  // namespace normlab
