// Training steps on one batch of random tokens, for the benchmarks.
#pragma once

#include <vector>

#include "normlab/config/config.h"
#include "normlab/train/stepper.h"

namespace normlab {

class StepRunner {
 public:
  enum class Watch { nothing, statistics, everything };  // statistics: what attention counts on its way
  explicit StepRunner(const Config& config, Watch watch = Watch::nothing);

  void step();

 private:
  Config config_;
  Stepper stepper_;
  std::vector<Batch> batches_;
  Watch watch_;
  int64_t step_ = 0;
};

}  // namespace normlab
