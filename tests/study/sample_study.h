// Studies made up for tests: a plan read from TOML, and trials whose curves are given.
#pragma once

#include <functional>
#include <string>

#include "normlab/study/analyse/results.h"

namespace normlab {

inline Plan sample_plan(const std::string& extra, const std::filesystem::path& folder = "study") {
  return make_plan(read_study(parse_toml("[norm]\nscheme = \"lp\"\n" + extra, "study.toml")), folder);
}

// Every trial has finished, with a curve that falls linearly over 100 steps from 4 to its final loss.
using FinalLoss = std::function<double(size_t variant, int fold, int64_t seed)>;
inline StudyResults sample_results(const Plan& plan, const FinalLoss& final_loss) {
  StudyResults results{.plan = plan, .trials = {}};
  for (const Trial& trial : plan.trials) {
    TrialResult result{.variant = trial.variant, .fold = trial.fold, .seed = trial.seed};
    result.folder = trial.folder.string();
    result.record.status = TrialStatus::finished;
    const double end = final_loss(trial.variant, trial.fold, trial.seed);
    for (int i = 0; i <= 10; ++i)
      result.curve.push_back({10 * i, 4 + (end - 4) * i / 10, 2.0 * i, static_cast<double>(i)});
    results.trials.push_back(result);
  }
  return results;
}

}  // namespace normlab
