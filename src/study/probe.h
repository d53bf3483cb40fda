// A probe: how fast trials train on this machine, from ten steps of each of as many as will run side by side.
#pragma once

#include "train/config.h"

namespace normlab {

struct Probe {
  double seconds_of_step = 0.0;   // the median, of one trial beside the others
  double flops_per_second = 0.0;  // of one trial
};
// Steps on random tokens; nothing is written.
Probe probe_speed(const Config& config, int vocab_size, int jobs);

}  // namespace normlab
