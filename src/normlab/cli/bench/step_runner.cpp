#include "normlab/cli/bench/step_runner.h"

#include <optional>

#include "normlab/cli/bench/bench.h"
#include "normlab/probe/step_probe.h"
#include "normlab/train/training_run.h"

namespace normlab {

StepRunner::StepRunner(const Config& config, Watch watch)
    : config_(config),
      stepper_(DecoderLm(config.model, config.norm, bench_vocab_size, /*seed=*/1), optimizer_settings(config.optim)),
      watch_(watch) {
  const int64_t b = config.train.batch_size, t = config.model.seq_len;
  const auto windows = [&](uint64_t stream) {
    return torch::tensor(random_tokens(b * t, stream), torch::kInt64).view({b, t});
  };
  batches_.assign(static_cast<size_t>(config.train.accumulate), {.inputs = windows(1), .targets = windows(2)});
}

void StepRunner::step() {
  Pass pass{.training = true, .seed = 1, .step = step_};
  std::optional<StepProbe> probe;
  if (watch_ != Watch::nothing)
    pass.observer =
        &probe.emplace(stepper_.model(),
                       StepProbe::Extent{.first_pass = step_,
                                         .batch_rows = std::vector<int64_t>(batches_.size(), config_.train.batch_size),
                                         .everything = watch_ == Watch::everything});
  step_ += config_.train.accumulate;
  if (!stepper_.step(batches_, pass, config_.optim.lr, config_.optim.clip).finite)
    throw Error("bench", "the loss is not finite, so that the step was left out. Use a smaller optim.lr.",
                Exit::diverged);
  if (probe) probe->readings();
}

void StepRunner::differentiate() { stepper_.differentiate(batches_, {.training = true, .seed = 1, .step = step_}); }

int64_t StepRunner::entries() { return count_entries(stepper_.parameters()); }

int64_t StepRunner::early_entries() {
  int64_t count = 0;
  stepper_.model().visit_linears([&](const Linear& linear) {
    if (!linear.maps.empty()) count += linear.weight.numel();
  });
  return count;
}

}  // namespace normlab
