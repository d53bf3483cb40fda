// Pages of `normlab inspect` that a reader asked for: computed one at a time, kept in memory.
#pragma once

#include <atomic>
#include <filesystem>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "normlab/base/stop.h"

namespace normlab {

enum class InspectionState { none, computing, done, failed };
struct Inspection {
  InspectionState state = InspectionState::none;
  std::shared_ptr<const std::string> page = {};  // done
  std::string problem = {};                      // failed
};

// Safe to call from several threads.
class Inspections {
 public:
  // The page of a run; throws when it cannot be made, also because a stop is wanted.
  using Compute = std::function<std::string(const std::filesystem::path& run, const StopToken& stop)>;
  explicit Inspections(Compute compute) : compute_(std::move(compute)) {}  // null: nothing is computed
  ~Inspections();
  Inspections(const Inspections&) = delete;
  Inspections& operator=(const Inspections&) = delete;

  bool possible() const { return compute_ != nullptr; }
  // Nothing happens while a page is computed, or if that of the run's present checkpoints is there.
  void start(const std::filesystem::path& run);
  Inspection of(const std::filesystem::path& run) const;
  bool busy() const;

 private:
  struct Kept {
    std::filesystem::path run;
    std::string checkpoints;  // at its start
    Inspection found;
  };
  bool is_computing() const;
  const Kept* find(const std::filesystem::path& run) const;
  void finish(const Inspection& found);

  Compute compute_;
  mutable std::mutex mutex_;
  std::vector<Kept> kept_;  // the last is the newest
  std::atomic<bool> stop_ = false;
  std::thread worker_;
};

}  // namespace normlab
