// How a study stands: its trials counted, the time that is left.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "normlab/serve/run_summary.h"
#include "normlab/study/run/plan.h"

namespace normlab {

struct StudySummary {
  RunState state = RunState::waiting;
  std::string title = {};
  std::string problem = {};
  size_t trials = 0, ended = 0, running = 0, diverged = 0, crashed = 0;
  double share = 0.0;  // of all steps
  std::optional<double> best_loss = {};
  std::string best_variant = {};
  std::optional<double> seconds_left = {};  // with as many trials in parallel as now
  int64_t changed = 0;                      // seconds since 1970

  std::string progress_text() const;  // "12 of 21 trials, 2 running"
};

// Of each trial of the plan.
std::vector<RunSummary> trials_of(const Plan& plan, RunSummaries& runs, const HeldLocks& locks);
StudySummary summarise(const Plan& plan, const std::vector<RunSummary>& trials, const HeldLocks& locks);

// Summaries of studies; plans are kept until study.toml changes.
class StudySummaries {
 public:
  explicit StudySummaries(const ServedFolder& folder) : folder_(folder) {}

  StudySummary of(const std::filesystem::path& study, RunSummaries& runs, const HeldLocks& locks);
  const Plan& plan_of(const std::filesystem::path& study);  // DataError when it cannot be read
  // Changes when the summary, or anything that the report shows, may have changed.
  std::string fingerprint(const std::filesystem::path& study, const HeldLocks& locks);

 private:
  struct Kept {
    FileStamp spec;
    Plan plan;
  };
  const ServedFolder& folder_;
  std::map<std::string, Kept> kept_;
};

}  // namespace normlab
