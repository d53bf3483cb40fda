// The folder of a run:
//   config.toml      the resolved configuration; a folder is a run when it has one
//   manifest.json    program, command line and machine of each session
//   metrics.jsonl    one row of numbers per line;  events.out.tfevents.*  the same for TensorBoard
//   checkpoints/     step-000250/ ..., the links latest and best; damaged-step-000250/ ...: set aside at a resume
//   run.lock         held by the process that writes to the run
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "normlab/base/folder_lock.h"

namespace normlab {

struct Checkpoint {
  int64_t step = 0;
  std::filesystem::path path;
  std::optional<double> val_loss;  // "val_loss" of its state.json
};

// The step in the name of a checkpoint's folder, such as step-000250; nothing for other names.
std::optional<int64_t> checkpoint_step(const std::filesystem::path& folder);

class RunDir {
 public:
  // Makes and locks the folder; UsageError when it holds a run or anything else.
  static RunDir create(const std::filesystem::path& path);
  // For reading; DataError when it is not a run.
  static RunDir open(const std::filesystem::path& path);
  // For resuming a run; Error when another process does. DataError when it has rows of metrics but no checkpoint: one
  // is written before the first row, so it was lost, and a start from scratch would lose the rows too.
  static RunDir open_locked(const std::filesystem::path& path);

  const std::filesystem::path& path() const { return path_; }
  std::filesystem::path config() const { return path_ / "config.toml"; }
  std::filesystem::path manifest() const { return path_ / "manifest.json"; }
  std::filesystem::path metrics() const { return path_ / "metrics.jsonl"; }
  std::filesystem::path checkpoint(int64_t step) const;  // where a StagedFolder with its files is to go

  std::vector<Checkpoint> checkpoints() const;  // by step, also damaged ones; Error when they cannot be listed
  std::optional<Checkpoint> latest() const;     // the last of them, also when a kill came before set_latest()
  std::optional<Checkpoint> best() const;       // what the link points to

  void set_latest(int64_t step) { set_link("latest", step); }
  void set_best(int64_t step) { set_link("best", step); }

  // Renames a checkpoint to <kind>-step-000250, by which no run resumes; returns its new path.
  std::filesystem::path set_aside(const Checkpoint& checkpoint, const std::string& kind);
  // Makes `latest` the checkpoint of this step, and `best` that of `best_step` if its own is gone.
  void relink(int64_t latest, int64_t best_step);

  // Removes all checkpoints but the last few (at least one), the few of least val_loss, and those the links point to.
  void apply_retention(size_t keep_last, size_t keep_best);

 private:
  explicit RunDir(std::filesystem::path path) : path_(std::move(path)) {}
  std::filesystem::path checkpoints_folder() const { return path_ / "checkpoints"; }
  void lock();
  void require_checkpoints() const;
  void set_link(const char* name, int64_t step);
  std::optional<int64_t> linked_step(const char* name) const;

  std::filesystem::path path_;
  std::optional<FolderLock> lock_;
};

}  // namespace normlab
