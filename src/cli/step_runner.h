// Training steps on one batch of random tokens, for the benchmarks.
#pragma once

#include <vector>

#include "train/config.h"
#include "train/stepper.h"

namespace normlab {

class StepRunner {
 public:
  // With `stats` attention counts its statistics on the way.
  explicit StepRunner(const Config& config, bool stats = false);

  void step();

 private:
  Config config_;
  Stepper stepper_;
  std::vector<Batch> batches_;
  std::vector<AttentionStats> stats_;
  int64_t step_ = 0;
};

}  // namespace normlab
