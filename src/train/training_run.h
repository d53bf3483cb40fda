// A training that can be run, whatever it trains.
#pragma once

#include <functional>

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

 protected:
  TrainingRun() = default;
  TrainingRun(TrainingRun&&) = default;
};

}  // namespace normlab
