#include "train/monitor.h"

#include <nlohmann/json.hpp>

#include "base/terminal.h"
#include "base/text.h"
#include "probe/first_bad.h"
#include "train/clock.h"

namespace normlab {

Monitor::Monitor(const Config& config) : config_(config), watchdog_(config.train.max_steps / 5) {}

Observer* Monitor::before_step(DecoderLm& model, int64_t step) {
  probe_.reset();
  if (config_.probe.every == 0 || step % config_.probe.every != 0) return nullptr;
  const TrainConfig& train = config_.train;
  probe_ = std::make_unique<StepProbe>(model, StepProbe::Extent{.first_pass = (step - 1) * train.accumulate,
                                                                .batch_size = train.batch_size,
                                                                .batches = train.accumulate});
  return probe_.get();
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
    log_line(str("warning: ", line));
    metrics.append(step, {{"warning", line}});
  }
}

std::string first_bad_tensor(Stepper& stepper, const std::vector<Batch>& batches, Pass pass) {
  FirstBad finder(stepper.model());
  pass.observer = &finder;
  stepper.differentiate(batches, pass);
  return finder.name().empty() ? "the norm of all gradients (infinite)" : finder.name();
}

}  // namespace normlab
