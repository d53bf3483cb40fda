// What watches a training: probes when they are due, watchdogs, and the search for the first bad tensor.
#pragma once

#include <functional>
#include <memory>

#include "normlab/config/config.h"
#include "normlab/probe/step_probe.h"
#include "normlab/probe/watchdog.h"
#include "normlab/record/metrics.h"
#include "normlab/record/tensorboard.h"
#include "normlab/train/stepper.h"

namespace normlab {

class Monitor {
 public:
  explicit Monitor(const Config& config);

  // The observer of the update that makes step number `step` from batches of `batch_rows` sequences; null when it is
  // not to be probed.
  template <class Model>
  Observer* before_step(Model& model, int64_t step, const std::vector<int64_t>& batch_rows);
  // After the step: what the other ranks have seen of it.
  void gather_from(RankGroup& ranks);
  // Writes readings and warnings; warnings also go to standard error.
  void after_step(int64_t step, const StepResult& result, MetricsLog& metrics, EventWriter& events);

  // What the watchdogs have seen, for the checkpoint.
  const WatchdogMemory& memory() const { return watchdog_.memory(); }
  void restore(const WatchdogMemory& memory) { watchdog_.restore(memory); }

 private:
  Config config_;
  Watchdog watchdog_;
  std::unique_ptr<StepProbe> probe_;
};

// Does a step that was not finite again, without its update: the first bad tensor, "the keys of layer 3, head 1 (NaN)".
template <class Model, class ModelBatch>
std::string first_bad_tensor(BasicStepper<Model, ModelBatch>& stepper, const std::vector<ModelBatch>& batches,
                             Pass pass);

}  // namespace normlab
