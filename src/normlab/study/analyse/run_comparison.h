// Runs of `normlab train` beside each other: what each of them left, and whether their losses can be compared.
#pragma once

#include <string>
#include <vector>

#include "normlab/study/analyse/results.h"

namespace normlab {

struct RunComparison {
  // Each run that could be read is a variant with one trial, its label the folder as it was named.
  StudyResults results;
  std::vector<std::string> incomparable = {};  // "the text: ...": why losses cannot be compared; empty: they can
  std::vector<std::string> unfinished = {};    // sentences about runs that are not at their end
  std::vector<std::string> unreadable = {};    // errors of runs that are left out
};

// UsageError for fewer than two folders, or one that is named twice or is not a run; DataError when none can be read.
RunComparison load_runs(const std::vector<std::string>& folders);

}  // namespace normlab
