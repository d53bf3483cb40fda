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

  // Rows and optimiser from now on shared with the other ranks.
  void share_with(RankGroup& ranks) { stepper_.share_with(ranks, /*shard=*/false); }
  void sum_gradients() { stepper_.sum_gradients(); }  // alone
  void differentiate();                               // forward and backward pass alone
  int64_t entries();                                  // of all parameters
  int64_t early_entries();                            // whose gradients are complete before the end of a backward pass

 private:
  Config config_;
  Stepper stepper_;
  std::vector<Batch> batches_;
  Watch watch_;
  int64_t step_ = 0;
};

}  // namespace normlab
