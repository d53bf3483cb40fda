#include "normlab/train/translation_trainer.h"

#include <algorithm>
#include <cmath>

#include "normlab/base/file.h"
#include "normlab/base/terminal.h"
#include "normlab/base/text.h"
#include "normlab/models/translate.h"
#include "normlab/train/bleu_of_text.h"
#include "normlab/train/clock.h"
#include "normlab/train/schedule.h"

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

TranslationTrainer::TranslationTrainer(const Config& config, TranslationData data, RunDir run, Sharing sharing)
    : TrainingRun(config, std::move(run), sharing.ranks),
      data_(std::move(data)),
      batches_(config, data_),
      dev_(first_pairs(data_.dev, config.train.eval_windows)),
      stepper_(make_translator(config, data_.vocabulary.size(), seed()), optimizer_settings(config.optim)) {
  if (ranks_) stepper_.share_with(*ranks_, sharing.optimizer);
  if (writes() && !run_.latest())
    log_line(concat(data_.train.size(), " pairs, ", data_.vocabulary.size(), " subwords; ", data_.dropped.describe()));
  begin(data_.sha256, [&](const auto& path) { return load_checkpoint(path, stepper_.model(), stepper_.optimizer()); });
}

std::vector<TranslationBatch> TranslationTrainer::next_batches() {
  std::vector<TranslationBatch> batches;
  for (int pass = 0; pass < config_.train.accumulate; ++pass)
    batches.push_back(batches_.at(next_batch() + pass, data_));
  return batches;
}

TrainingRun::Step TranslationTrainer::make_step(double lr) {
  const std::vector<TranslationBatch> batches = next_batches();
  int64_t words = 0;
  for (const TranslationBatch& batch : batches) words += batch.words();
  return {watched_step(stepper_, batches, lr), static_cast<double>(words), {{"words", words}}};
}

// Nats per subword, without smoothing.
std::optional<double> TranslationTrainer::dev_loss(const StopToken& stop) {
  const torch::NoGradGuard no_grad;
  double total = 0.0;
  int64_t words = 0;
  int number = 0;
  for (const TranslationBatch& batch : batches_.all(dev_, data_)) {
    if (stop()) return std::nullopt;
    if (ranks_ && number++ % ranks_->size() != ranks_->rank()) continue;
    total += stepper_.model().loss_sum(batch, Pass{}).item<double>();
    words += batch.words();
  }
  if (ranks_) {
    const std::vector<double> all = sum(*ranks_, {total, static_cast<double>(words)});
    return all[0] / all[1];
  }
  return total / static_cast<double>(words);
}

std::optional<std::vector<std::string>> TranslationTrainer::translations_of(const std::vector<std::string>& lines,
                                                                            const StopToken& stop) {
  const size_t first = ranks_ ? static_cast<size_t>(ranks_->rank()) : 0,
               stride = ranks_ ? static_cast<size_t>(ranks_->size()) : 1;
  std::vector<std::string> own;
  for (size_t i = first; i < lines.size(); i += stride) own.push_back(lines[i]);
  const BeamOptions options{config_.translation.beam, config_.translation.length_penalty, stop};
  const auto found = translate_lines(stepper_.model(), data_.vocabulary, own, options, sentences_at_once);
  if (found.size() != own.size()) return std::nullopt;
  std::vector<std::string> output;
  for (const TranslatedLine& line : found)
    output.push_back(line.alternatives.empty() ? "" : line.alternatives.front().text);
  if (!ranks_) return output;
  const std::vector<std::string> parts = ranks_->gather(join(output, "\n"));
  std::vector<std::string> all(lines.size());
  for (size_t rank = 0; rank < parts.size(); ++rank) {
    const std::vector<std::string> theirs = split(parts[rank], '\n');
    for (size_t i = rank, k = 0; i < all.size() && k < theirs.size(); i += stride, ++k) all[i] = theirs[k];
  }
  return all;
}

// The translation is kept in the run as translations/NAME.LANGUAGE.
std::optional<double> TranslationTrainer::bleu_of(const ParallelText& text, const std::string& name,
                                                  const StopToken& stop) {
  const auto output = translations_of(text.source, stop);
  if (!output) return std::nullopt;
  if (writes()) {
    std::string file;
    for (const std::string& line : *output) file += line + "\n";
    const std::filesystem::path folder = run_.path() / "translations";
    std::filesystem::create_directories(folder);
    write_file_atomically(folder / concat(name, ".", config_.translation.target), file);
  }
  return bleu_of_text(*output, text.target, config_.translation.bleu);
}

bool TranslationTrainer::evaluate_now(const StopToken& stop) {
  const auto loss = dev_loss(stop);
  if (!loss) return false;
  const auto bleu = std::isfinite(*loss) ? bleu_of(dev_, "dev", stop) : 0.0;
  if (!bleu) return false;
  state_.last_eval = state_.step, state_.val_loss = *loss;
  if (!std::isfinite(*loss)) return true;
  const bool better = state_.bleus.empty() || *bleu > best_bleu(state_);
  state_.best_loss = state_.best_step < 0 ? *loss : std::min(state_.best_loss, *loss);
  state_.evals_since_best = better ? 0 : state_.evals_since_best + 1;
  if (better) state_.best_step = state_.step;
  state_.bleus.push_back(*bleu);
  const OptimConfig& optim = config_.optim;
  if (optim.schedule == ScheduleKind::plateau && state_.step >= optim.warmup_steps &&
      on_plateau(state_.bleus, optim.plateau_patience))
    state_.lr_factor *= optim.plateau_decay;
  record_evaluation({{"val_loss", *loss}, {"val_bleu", *bleu}});
  return true;
}

// The test text, by the best checkpoint.
bool TranslationTrainer::finish(const StopToken& stop) {
  if (data_.test.source.empty()) return true;
  const auto latest = run_.latest(), best = run_.best();
  if (best) load_weights(best->path, stepper_.model());
  const auto bleu = bleu_of(data_.test, "test", stop);
  if (latest) load_weights(latest->path, stepper_.model());
  if (!bleu) return false;
  state_.test_bleu = *bleu;
  if (writes()) {
    metrics_->append(state_.step, {{"test_bleu", *bleu}, {"best_step", state_.best_step}});
    events_->scalar("test/bleu", state_.step, *bleu, wall_time());
  }
  save();
  return true;
}

void TranslationTrainer::write_checkpoint(const std::filesystem::path& path, const NamedTensors& optimizer) {
  save_checkpoint(path, stepper_.model(), optimizer, state_, data_.vocabulary, config_);
}

// Also when the rate has decayed to its end.
bool TranslationTrainer::enough() const {
  return TrainingRun::enough() || (config_.optim.schedule == ScheduleKind::plateau && state_.lr_factor < 1.0 &&
                                   config_.optim.lr * state_.lr_factor < config_.optim.min_lr);
}

}  // namespace normlab
