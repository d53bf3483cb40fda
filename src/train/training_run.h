// A training that can be run, whatever it trains.
#pragma once

#include <functional>
#include <string>

#include "base/text.h"
#include "train/checkpoint.h"
#include "train/progress.h"

namespace normlab {

class TrainingRun {
 public:
  virtual ~TrainingRun() = default;

  // Until the last step, an early stop, a signal or divergence; `show` is called after each step.
  virtual Outcome run(const std::function<void(const Progress&)>& show) = 0;
  virtual const TrainState& state() const = 0;
  virtual int64_t parameter_count() const = 0;
  // Of a run that has diverged: the first tensor that was not finite, and its layer; empty when nobody looked.
  virtual std::string culprit() const { return {}; }

 protected:
  TrainingRun() = default;
  TrainingRun(TrainingRun&&) = default;
};

// What to say of a run that has diverged.
inline std::string divergence(const TrainingRun& run) {
  const std::string culprit = run.culprit();
  return str("the loss is not finite after step ", run.state().step, culprit.empty() ? "" : "; first bad: " + culprit);
}

}  // namespace normlab
