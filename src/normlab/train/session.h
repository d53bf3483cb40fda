// A session of a run: its folder created or reopened, its text loaded, a trainer ready to go.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "normlab/train/training_run.h"

namespace normlab {

struct SessionRequest {
  Config config;
  std::filesystem::path folder;
  bool resuming = false;  // the folder holds the run
  std::vector<std::string> command;
  Sharing sharing = {};
  StopToken stop = never_stop;  // while a large text is tokenised
};
// UsageError when the run was started with another configuration, DataError when with another vocabulary.
std::unique_ptr<TrainingRun> open_session(const SessionRequest& request);

}  // namespace normlab
