// A session of a run: its folder made or taken up, its text loaded, a trainer ready to go.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "data/corpus.h"
#include "train/training_run.h"

namespace normlab {

// The text of a configuration; DataError when no window fits into one of its parts.
Corpus load_text(const Config& config);

struct SessionRequest {
  Config config;
  std::filesystem::path folder;
  bool going_on = false;  // the folder holds the run
  std::vector<std::string> command;
};
// UsageError when the run was started with another configuration, DataError when with another vocabulary.
std::unique_ptr<TrainingRun> open_session(const SessionRequest& request);

}  // namespace normlab
