#include "normlab/train/trainer.h"

#include <cmath>

#include "normlab/models/device.h"
#include "normlab/train/evaluate.h"

namespace normlab {
using torch::Tensor;

namespace {

// With drawn weights, or with those that a new run is to start from.
DecoderLm first_model(const Config& config, const Corpus& corpus, uint64_t seed, bool is_new) {
  DecoderLm model(config.model, config.norm, corpus.tokenizer.vocab_size(), seed, tensor_options(config));
  if (is_new && !config.train.start.empty()) load_start(config.train.start, model);
  return model;
}

}  // namespace

Trainer::Trainer(const Config& config, Corpus corpus, RunDir run, Sharing sharing)
    : TrainingRun(config, std::move(run), sharing.ranks),
      corpus_(std::move(corpus)),
      split_(split_of(corpus_, config.data.folds, config.data.fold)),
      eval_windows_(eval_windows(split_.held_out, config.model.seq_len, config.train.eval_windows)),
      eval_size_(size_of_targets(corpus_.tokenizer, corpus_.tokens, eval_windows_)),
      stepper_(first_model(config, corpus_, seed(), !run_.latest()), optimizer_settings(config.optim),
               config.train.only) {
  if (ranks_) stepper_.share_with(*ranks_, sharing.optimizer);
  begin(corpus_.sha256,
        [&](const auto& path) { return load_checkpoint(path, stepper_.model(), stepper_.optimizer()); });
}

// Batch number `index` of the run: every one has its own windows.
Batch Trainer::batch(int64_t index) const {
  const int b = config_.train.batch_size, t = config_.model.seq_len;
  const auto tokens = host_tokens(find_device(config_.train.device));
  const Tensor inputs = torch::empty({b, t}, tokens), targets = torch::empty({b, t}, tokens);
  const auto size = static_cast<size_t>(b) * static_cast<size_t>(t);
  fill_batch({seed(), config_.data.fold, b, t}, corpus_.tokens, split_, index, {inputs.data_ptr<int64_t>(), size},
             {targets.data_ptr<int64_t>(), size});
  return {inputs, targets};
}

std::vector<Batch> Trainer::next_batches() const {
  std::vector<Batch> batches;
  for (int pass = 0; pass < config_.train.accumulate; ++pass) batches.push_back(batch(next_batch() + pass));
  return batches;
}

TrainingRun::Step Trainer::make_step(double lr) {
  const StepResult result = watched_step(stepper_, next_batches(), lr);
  const double tokens =
      static_cast<double>(config_.train.batch_size) * config_.model.seq_len * config_.train.accumulate;
  return {result, tokens, {{"tokens", tokens * static_cast<double>(state_.step + 1)}}};
}

bool Trainer::evaluate_now(const StopToken& stop) {
  const auto loss = evaluate(stepper_.model(), corpus_.tokens, eval_windows_, config_.train.batch_size, stop, ranks_);
  if (!loss) return false;
  state_.last_eval = state_.step;
  state_.val_loss = *loss;
  if (!std::isfinite(*loss)) return true;
  const bool better = state_.best_step < 0 || *loss < state_.best_loss;
  state_.evals_since_best = better ? 0 : state_.evals_since_best + 1;
  if (better) state_.best_loss = *loss, state_.best_step = state_.step;
  nlohmann::ordered_json row = {{"val_loss", *loss}};
  if (eval_size_.bytes > 0) {
    row["val_bits_per_character"] = eval_size_.bits_per_character(*loss);
    row["val_bits_per_byte"] = eval_size_.bits_per_byte(*loss);
  }
  record_evaluation(row);
  return true;
}

void Trainer::write_checkpoint(const std::filesystem::path& path, const NamedTensors& optimizer) {
  save_checkpoint(path, stepper_.model(), optimizer, state_, corpus_.tokenizer, config_);
}

}  // namespace normlab
