#include "normlab/train/monitor.h"

#include <nlohmann/json.hpp>

#include "normlab/base/terminal.h"
#include "normlab/base/text.h"
#include "normlab/probe/first_bad.h"
#include "normlab/train/clock.h"

namespace normlab {

Monitor::Monitor(const Config& config)
    : config_(config), watchdog_(config.train.max_steps / 5, bounds_logits(config.norm)) {}

template <class Model>
Observer* Monitor::before_step(Model& model, int64_t step, const std::vector<int64_t>& batch_rows) {
  probe_.reset();
  if (config_.probe.every == 0 || step % config_.probe.every != 0) return nullptr;
  probe_ = std::make_unique<StepProbe>(
      model, StepProbe::Extent{.first_pass = (step - 1) * config_.train.accumulate, .batch_rows = batch_rows});
  return probe_.get();
}

void Monitor::gather_from(RankGroup& ranks) {
  if (!probe_) return;
  const std::vector<std::string> all = ranks.gather(probe_->seen());
  for (int rank = 0; rank < ranks.size(); ++rank)
    if (rank != ranks.rank()) probe_->add_seen(all[static_cast<size_t>(rank)]);
}

void Monitor::after_step(int64_t step, const StepResult& result, MetricsLog& metrics, EventWriter& events) {
  std::vector<std::string> warnings = watchdog_.after_step(step, result.loss, result.grad_norm);
  if (probe_) {
    const std::vector<Reading> readings = probe_->readings();
    nlohmann::ordered_json row;
    const double now = wall_time();
    for (const Reading& reading : readings) {
      if (reading.head >= 0 && !config_.probe.heads) continue;
      const std::string name = name_of(reading);
      row[name] = reading.value;
      events.scalar(name, step, reading.value, now);
    }
    metrics.append(step, row);
    for (std::string& line : watchdog_.after_probe(step, readings)) warnings.push_back(std::move(line));
  }
  for (const std::string& line : warnings) {
    log_line(concat(warning_label(STDERR_FILENO), line));
    metrics.append(step, {{"warning", line}});
  }
}

template <class Model, class ModelBatch>
std::string first_bad_tensor(BasicStepper<Model, ModelBatch>& stepper, const std::vector<ModelBatch>& batches,
                             Pass pass) {
  FirstBad finder(stepper.model());
  pass.observer = &finder;
  stepper.differentiate(batches, pass);
  return finder.name().empty() ? "the norm of all gradients (infinite)" : finder.name();
}

template Observer* Monitor::before_step(DecoderLm&, int64_t, const std::vector<int64_t>&);
template Observer* Monitor::before_step(EncoderDecoder&, int64_t, const std::vector<int64_t>&);
template std::string first_bad_tensor(Stepper&, const std::vector<Batch>&, Pass);
template std::string first_bad_tensor(TranslationStepper&, const std::vector<TranslationBatch>&, Pass);

}  // namespace normlab
