// How a run stands, from its files alone.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>

#include "normlab/config/config.h"
#include "normlab/serve/activity.h"
#include "normlab/serve/served_folder.h"

namespace normlab {

enum class RunState { waiting, running, stopped, finished, diverged, crashed, damaged };
const char* name_of(RunState state);

// Size, time of change and inode of a file; all zero when it is missing.
struct FileStamp {
  int64_t size = 0, seconds = 0, nanoseconds = 0;
  uint64_t inode = 0;
  bool operator==(const FileStamp&) const = default;
};
FileStamp stamp_of(const std::filesystem::path& file);
std::string text_of(const FileStamp& stamp);

struct RunSummary {
  RunState state = RunState::waiting;
  std::string problem = {};  // why it crashed, diverged or cannot be read
  std::string scheme = {};
  int64_t step = 0, max_steps = 0;
  std::optional<double> loss = {}, val_loss = {}, best_loss = {};
  int64_t best_step = 0;
  double train_seconds = 0.0;
  double tokens_per_second = 0.0;
  int64_t changed = 0;  // of its metrics: seconds since 1970

  bool ended() const { return state == RunState::finished || state == RunState::diverged; }
  double share() const;                        // of its steps that are done
  std::optional<double> seconds_left() const;  // at its speed so far, without evaluations; nothing unless it runs
};

// Summaries of runs; what was read is kept until its files change.
class RunSummaries {
 public:
  explicit RunSummaries(const ServedFolder& folder) : folder_(folder) {}

  // `known`: the configuration of a trial, from the plan of its study; then a finished trial's rows are not read.
  RunSummary of(const std::filesystem::path& run, const HeldLocks& locks, const Config* known = nullptr);
  // Changes when the summary may have changed.
  static std::string fingerprint(const std::filesystem::path& run, const HeldLocks& locks);

 private:
  struct Kept {
    FileStamp config, metrics, record;
    RunSummary summary = {};  // as if nobody worked on it
    bool brief = false;       // of a trial: from trial.json where that says enough
  };
  RunSummary read(const std::filesystem::path& run, const Config* known) const;

  const ServedFolder& folder_;
  std::map<std::string, Kept> kept_;
};

// Whether every file of a run that is read and exists lies in the folder: a link could lead anywhere.
bool files_are_inside(const ServedFolder& folder, const std::filesystem::path& run);

}  // namespace normlab
