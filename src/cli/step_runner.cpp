#include "cli/step_runner.h"

#include "cli/bench.h"

namespace normlab {

StepRunner::StepRunner(const Config& config, bool stats)
    : config_(config),
      stepper_(DecoderLm(config.model, config.norm, bench_vocab_size, /*seed=*/1),
               {.beta1 = config.optim.beta1,
                .beta2 = config.optim.beta2,
                .eps = config.optim.eps,
                .weight_decay = config.optim.weight_decay}) {
  const int64_t b = config.train.batch_size, t = config.model.seq_len;
  const auto windows = [&](uint64_t stream) {
    return torch::tensor(random_tokens(b * t, stream), torch::kInt64).view({b, t});
  };
  batches_.assign(static_cast<size_t>(config.train.accumulate), {.inputs = windows(1), .targets = windows(2)});
  if (stats) stats_.resize(static_cast<size_t>(config.model.n_layers * b * config.model.n_heads));
}

void StepRunner::step() {
  const Pass pass{.training = true,
                  .seed = 1,
                  .step = step_++,
                  .stats = stats_.empty() ? nullptr : stats_.data(),
                  .sequences = config_.train.batch_size};
  if (!stepper_.step(batches_, pass, config_.optim.lr, config_.optim.clip).finite)
    throw Error("bench", "the loss is not finite, so that the step was left out. Use a smaller optim.lr.",
                Exit::diverged);
}

}  // namespace normlab
