// Joining studies whose trials were run in separate folders.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "normlab/study/run/plan.h"

namespace normlab {

// The study that has the folds, seeds, list values and [[variant]]s of all. UsageError where two differ in anything
// else; titles, baseline and target loss are those of the first.
StudySpec merged_spec(const std::vector<Plan>& plans);

struct MergedStudy {
  size_t trials = 0, ended = 0;
  std::vector<std::string> notes;  // trials that two folders have, and which one was kept
};

// Copies the trials into a new study. Of a trial that several folders have, one that has ended is kept, or the one that
// got furthest. Errors leave nothing behind: another version, configuration or text, a damaged trial, one in use.
MergedStudy merge_studies(const std::vector<std::filesystem::path>& folders, const std::filesystem::path& out);

}  // namespace normlab
