// normlab plan --slurm and --parallel: a prepared study as jobs of a batch system.
#pragma once

#include <string>

#include "normlab/base/error.h"

namespace normlab {

struct JobOptions {
  std::string study;
  bool slurm = false, parallel = false;
  double speed = 0;  // operations/s of a trial; 0: measured here
};

// Writes DIR/slurm.sh, or prints the line of GNU parallel.
Exit plan_jobs(const JobOptions& options);

}  // namespace normlab
