// How far a study is: rows for a terminal, one line elsewhere, and the time left by floating-point operations.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "normlab/study/run/trial.h"

namespace normlab {

std::string name_of(const Plan& plan, const Trial& trial);  // "trial 12 (p = 3, fold 4, seed 1337)"

class StudyProgress {
 public:
  using Clock = std::chrono::steady_clock;

  // `flops` of each trial of the plan. Looks at every trial's folder.
  StudyProgress(const Plan& plan, std::vector<double> flops, Clock::time_point start = Clock::now());

  void update(const Trial& trial);  // looks at its folder again

  const TrialRecord& record(const Trial& trial) const { return records_[trial.number - 1]; }
  size_t count(TrialStatus status) const;
  double flops_left() const;

  std::string line(Clock::time_point now) const;
  // A row for each variant when they fit into so many rows, one for each running trial, and the line.
  std::string table(const std::vector<const Trial*>& running, int rows, Clock::time_point now) const;

 private:
  double flops_done() const;
  std::string variant_row(size_t variant, size_t label_width) const;
  std::string running_row(const Trial& trial) const;

  const Plan& plan_;
  std::vector<double> flops_;
  std::vector<TrialRecord> records_;
  std::vector<Glance> glances_;
  Clock::time_point start_;
  double flops_before_ = 0.0;  // this session
};

}  // namespace normlab
